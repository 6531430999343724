"""The headers of responses: sessions, charges, activities, places."""

import re

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from server import PRIMARY_KEY
from support import GUID, Hook, fresh, refused

SESSION_TOKEN = re.compile(r"0:-1#(\d+)")


def lsn(headers) -> int:
    return int(SESSION_TOKEN.fullmatch(headers["x-ms-session-token"]).group(1))


@pytest.fixture
def life(container):
    """Does everything that can be done to an item and yields the headers of each response, by what was done."""
    hooks = {name: Hook() for name in ("create", "read", "upsert", "replace", "delete")}
    body = {"id": fresh("item"), "pk": "a"}
    container.create_item(body, response_hook=hooks["create"])
    container.read_item(body["id"], "a", response_hook=hooks["read"])
    container.upsert_item(body, response_hook=hooks["upsert"])
    container.replace_item(body["id"], body, response_hook=hooks["replace"])
    container.delete_item(body["id"], "a", response_hook=hooks["delete"])
    return {name: hook.headers for name, hook in hooks.items()}


def test_every_response_tells_its_place(life, database, container):
    rid = container.read()["_rid"]
    for headers in life.values():
        assert headers["x-ms-alt-content-path"] == f"dbs/{database.id}/colls/{container.id}"
        assert headers["x-ms-content-path"] == rid
        assert headers["x-ms-documentdb-partitionkeyrangeid"] == "0"
        assert int(headers["lsn"]) == lsn(headers)


def test_every_response_has_an_activity_and_a_charge(life):
    activities = [headers["x-ms-activity-id"] for headers in life.values()]
    assert all(GUID.fullmatch(activity) for activity in activities) and len(set(activities)) == len(activities)
    charges = {name: float(headers["x-ms-request-charge"]) for name, headers in life.items()}
    assert charges["read"] == 1.0
    assert all(charges[name] > charges["read"] for name in ("create", "upsert", "replace", "delete"))


def test_every_write_moves_the_session_forward_and_reads_do_not(life):
    assert lsn(life["create"]) == lsn(life["read"])
    moves = [lsn(life[name]) for name in ("create", "upsert", "replace", "delete")]
    assert moves == list(range(moves[0], moves[0] + 4))


def test_larger_items_cost_more(container):
    charges = []
    for size in (100, 10_000, 100_000):
        name = fresh("item")
        write = container.create_item({"id": name, "pk": "a", "text": "x" * size}).get_response_headers()
        read = container.read_item(name, "a").get_response_headers()
        charges.append((float(write["x-ms-request-charge"]), float(read["x-ms-request-charge"])))
    assert charges == sorted(charges) and len({read for _, read in charges}) == 3


def test_a_failed_read_carries_the_session_on(container):
    created = container.create_item({"id": fresh("item"), "pk": "a"})
    with refused(404) as caught:
        container.read_item(fresh("missing"), "a")
    headers = caught.value.response.headers
    assert lsn(headers) == lsn(created.get_response_headers())
    assert float(headers["x-ms-request-charge"]) > 0


def test_a_session_token_of_the_client_is_taken(container):
    created = container.create_item({"id": fresh("item"), "pk": "a"})
    token = created.get_response_headers()["x-ms-session-token"]
    assert container.read_item(created["id"], "a", session_token=token)["id"] == created["id"]


def test_a_session_that_is_ahead_is_told(container):
    created = container.create_item({"id": fresh("item"), "pk": "a"})
    with refused(404, "The read session is not available", substatus=1002):
        container.read_item(created["id"], "a", session_token="0:-1#999999999")


@pytest.mark.parametrize("token", ["garbage", "0:x#y", "0:-1#"])
def test_a_garbage_session_token_is_refused(container, token):
    created = container.create_item({"id": fresh("item"), "pk": "a"})
    with refused(400, "session token"):
        container.read_item(created["id"], "a", session_token=token)


def test_a_client_keeps_its_session(endpoint, database):
    with CosmosClient(endpoint, PRIMARY_KEY) as client:
        name = fresh("session")
        container = client.get_database_client(database.id).create_container(name, PartitionKey("/pk"))
        written = container.create_item({"id": "1", "pk": "a"}).get_response_headers()["x-ms-session-token"]
        kept = client.client_connection.session.session_container.rid_to_session_token
        assert list(kept[container.read()["_rid"]]) == ["0"]
        hook = Hook()
        seen = []
        container.read_item(
            "1", "a", raw_request_hook=lambda request: seen.append(request.http_request.headers), response_hook=hook
        )
        assert seen[-1]["x-ms-session-token"] == written == hook.headers["x-ms-session-token"]


def test_an_activity_id_is_echoed(container):
    container.upsert_item({"id": "echo", "pk": "a"})
    sent = []
    read = container.read_item("echo", "a", raw_request_hook=lambda request: sent.append(request.http_request.headers))
    assert read.get_response_headers()["x-ms-activity-id"] == sent[-1]["x-ms-activity-id"]
