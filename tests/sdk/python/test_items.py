"""Items: create, read, replace, upsert, delete; conditions, sizes, bodies and ids."""

import json
import math
import pathlib
import threading

import pytest
from azure.core import MatchConditions
from azure.cosmos import CosmosClient, exceptions

from server import PRIMARY_KEY
from support import SYSTEM_PROPERTIES, Hook, content, fresh, ids, refused

IDS = json.loads((pathlib.Path(__file__).parents[1] / "cases/item_ids.json").read_text(encoding="utf-8"))
IDS_OF_PYTHON = [case["id"] for case in IDS["odd"] if case.get("python", True)]

MEBIBYTE = 1 << 20
OLD_ETAG = '"00000000-0000-0000-0000-000000000000"'


@pytest.fixture
def item(container):
    """A new item in a partition of its own."""
    return container.create_item({"id": fresh("item"), "pk": fresh("key"), "value": 1})


def of_size(size: int) -> dict:
    """An item whose JSON, as the SDK sends it, has this many bytes."""
    item = {"id": fresh("large"), "pk": "large", "text": ""}
    item["text"] = "x" * (size - len(json.dumps(item, separators=(",", ":"))))
    return item


def test_a_created_item_has_the_properties_of_the_service(container):
    body = {"id": fresh("item"), "pk": "a", "nested": {"list": [1, 2.5, None, True, "ü"]}}
    created = container.create_item(body)
    assert content(created) == body
    owner = container.read()
    assert list(created)[-5:] == ["_rid", "_self", "_etag", "_attachments", "_ts"]
    assert len(created["_rid"]) == 24 and created["_rid"].startswith(owner["_rid"][:10])
    assert created["_self"] == f"{owner['_self']}docs/{created['_rid']}/"
    assert created["_attachments"] == "attachments/"
    assert created["_etag"].startswith('"') and created["_etag"].endswith('"')
    assert isinstance(created["_ts"], int)
    assert created.get_response_headers()["etag"] == created["_etag"]


def test_an_item_is_read_as_it_was_created(container, item):
    read = container.read_item(item["id"], item["pk"])
    assert dict(read) == dict(item)
    assert read.get_response_headers()["etag"] == item["_etag"]


def test_creating_an_id_twice_conflicts(container, item):
    with refused(409, "(Conflict)", "already exists") as caught:
        container.create_item({"id": item["id"], "pk": item["pk"]})
    assert isinstance(caught.value, exceptions.CosmosResourceExistsError)
    assert dict(container.read_item(item["id"], item["pk"])) == dict(item)


def test_the_same_id_lives_in_every_logical_partition(container):
    name = fresh("shared")
    for key in ("a", "b", 1, None, True):
        container.create_item({"id": name, "pk": key, "mine": key})
    for key in ("a", "b", 1, None, True):
        assert container.read_item(name, key)["mine"] == key


@pytest.mark.parametrize("act", ["read", "replace", "delete"])
def test_a_missing_item_is_not_found(container, act):
    body = {"id": fresh("missing"), "pk": "a"}
    acts = {
        "read": lambda: container.read_item(body["id"], "a"),
        "replace": lambda: container.replace_item(body["id"], body),
        "delete": lambda: container.delete_item(body["id"], "a"),
    }
    with refused(404, "(NotFound)") as caught:
        acts[act]()
    assert isinstance(caught.value, exceptions.CosmosResourceNotFoundError)
    assert "x-ms-session-token" in caught.value.response.headers


def test_an_item_of_another_partition_is_not_found(container, item):
    with refused(404):
        container.read_item(item["id"], fresh("key"))


def test_replace_changes_content_and_etag_and_keeps_the_rid(container, item):
    replaced = container.replace_item(item, {"id": item["id"], "pk": item["pk"], "other": 2})
    assert content(replaced) == {"id": item["id"], "pk": item["pk"], "other": 2}
    assert replaced["_rid"] == item["_rid"] and replaced["_self"] == item["_self"]
    assert replaced["_etag"] != item["_etag"] and replaced["_ts"] >= item["_ts"]
    assert dict(container.read_item(item["id"], item["pk"])) == dict(replaced)


def test_replace_may_change_the_id(container, item):
    taken = container.create_item({"id": fresh("taken"), "pk": item["pk"]})
    with refused(409):
        container.replace_item(item["id"], {"id": taken["id"], "pk": item["pk"]})
    assert dict(container.read_item(item["id"], item["pk"])) == dict(item)
    renamed = container.replace_item(item["id"], {"id": fresh("other"), "pk": item["pk"]})
    assert renamed["_rid"] == item["_rid"]
    assert dict(container.read_item(renamed["id"], item["pk"])) == dict(renamed)
    with refused(404):
        container.read_item(item["id"], item["pk"])


def test_upsert_creates_and_then_replaces(container):
    body, hook = {"id": fresh("item"), "pk": "a", "value": 1}, Hook()
    created = container.upsert_item(body)
    replaced = container.upsert_item({**body, "value": 2}, response_hook=hook)
    assert created["_rid"] == replaced["_rid"] and created["_etag"] != replaced["_etag"]
    assert container.read_item(body["id"], "a")["value"] == 2


def test_a_deleted_item_is_gone_and_its_id_free(container, item):
    container.delete_item(item, item["pk"])
    with refused(404):
        container.read_item(item["id"], item["pk"])
    with refused(404):
        container.delete_item(item, item["pk"])
    again = container.create_item({"id": item["id"], "pk": item["pk"]})
    assert again["_rid"] != item["_rid"]


def test_system_properties_in_a_body_are_overwritten(container):
    body = {"id": fresh("item"), "pk": "a", **dict.fromkeys(SYSTEM_PROPERTIES, "mine"), "_lsn": 7}
    created = container.create_item(body)
    assert all(created[name] != "mine" for name in SYSTEM_PROPERTIES)
    assert "_lsn" not in container.read_item(body["id"], "a")


def test_the_sdk_makes_an_id_if_asked(container):
    created = container.create_item({"pk": "a"}, enable_automatic_id_generation=True)
    assert container.read_item(created["id"], "a")["_rid"] == created["_rid"]


# Conditions


def test_replace_and_delete_only_if_the_etag_is_current(container, item):
    unless = {"match_condition": MatchConditions.IfNotModified}
    body = {"id": item["id"], "pk": item["pk"]}
    with refused(412, "(PreconditionFailed)"):
        container.replace_item(item["id"], body, etag=OLD_ETAG, **unless)
    replaced = container.replace_item(item["id"], {**body, "value": 2}, etag=item["_etag"], **unless)
    with refused(412) as caught:
        container.delete_item(item["id"], item["pk"], etag=item["_etag"], **unless)
    assert isinstance(caught.value, exceptions.CosmosAccessConditionFailedError)
    assert "x-ms-session-token" in caught.value.response.headers
    assert container.read_item(item["id"], item["pk"])["value"] == 2
    container.delete_item(item["id"], item["pk"], etag=replaced["_etag"], **unless)


def test_upsert_heeds_the_etag_only_of_an_item_that_exists(container):
    body, condition = (
        {"id": fresh("item"), "pk": "a"},
        {"etag": OLD_ETAG, "match_condition": MatchConditions.IfNotModified},
    )
    created = container.upsert_item(body, **condition)
    with refused(412):
        container.upsert_item(body, **condition)
    assert container.upsert_item(body, etag=created["_etag"], match_condition=MatchConditions.IfNotModified)


def test_replace_of_whatever_is_there(container, item):
    body = {"id": item["id"], "pk": item["pk"]}
    container.replace_item(item["id"], body, match_condition=MatchConditions.IfPresent)
    container.delete_item(item["id"], item["pk"])
    with refused(404):
        container.replace_item(item["id"], body, match_condition=MatchConditions.IfPresent)


def test_a_read_of_what_is_known_is_not_modified(container, item):
    hook = Hook()
    known = container.read_item(
        item["id"], item["pk"], etag=item["_etag"], match_condition=MatchConditions.IfModified, response_hook=hook
    )
    assert dict(known) == {}
    assert hook.headers["etag"] == item["_etag"]
    assert "x-ms-session-token" in hook.headers and float(hook.headers["x-ms-request-charge"]) > 0
    replaced = container.upsert_item({"id": item["id"], "pk": item["pk"]})
    fresh_read = container.read_item(
        item["id"], item["pk"], etag=item["_etag"], match_condition=MatchConditions.IfModified
    )
    assert dict(fresh_read) == dict(replaced)


def test_of_many_writers_with_one_etag_exactly_one_wins(container, item):
    outcomes = []

    def write(number):
        try:
            body = {"id": item["id"], "pk": item["pk"], "winner": number}
            container.replace_item(item["id"], body, etag=item["_etag"], match_condition=MatchConditions.IfNotModified)
            outcomes.append(number)
        except exceptions.CosmosAccessConditionFailedError:
            outcomes.append(None)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    [thread.start() for thread in threads], [thread.join() for thread in threads]
    winners = [number for number in outcomes if number is not None]
    assert len(outcomes) == 8 and len(winners) == 1
    assert container.read_item(item["id"], item["pk"])["winner"] == winners[0]


# Responses without content


def test_writes_without_a_response_still_tell_the_etag(container):
    body = {"id": fresh("item"), "pk": "a", "value": 1}
    for act in (
        container.create_item,
        container.upsert_item,
        lambda body, **options: container.replace_item(body["id"], body, **options),
    ):
        answer = act(body, no_response=True)
        assert dict(answer) == {}
        headers = answer.get_response_headers()
        assert headers["etag"] == container.read_item(body["id"], "a")["_etag"]
        assert "x-ms-session-token" in headers


def test_a_client_that_wants_no_responses(endpoint, database, container):
    with CosmosClient(endpoint, PRIMARY_KEY, no_response_on_write=True) as client:
        quiet = client.get_database_client(database.id).get_container_client(container.id)
        body = {"id": fresh("item"), "pk": "a"}
        assert dict(quiet.create_item(body)) == {}
        assert content(quiet.upsert_item(body, no_response=False)) == body


# Bodies


@pytest.mark.parametrize(
    "value",
    [
        0,
        -1,
        2**53 - 1,
        -(2**53) + 1,
        0.1,
        -2.5,
        1e300,
        5e-324,
        1.7976931348623157e308,
        "",
        "\u0000\u0001\u001f\u007f",
        "\u2028\u2029\ufeff\ufffd",
        "😀" * 10,
        '"\\/\b\f\n\r\t',
        [],
        {},
        [[]],
        {"": ""},
        {"a": {"b": {"c": [None, False, {"d": 1}]}}},
        None,
        True,
        False,
    ],
    ids=repr,
)
def test_values_come_back_as_they_went(container, value):
    body = {"id": fresh("item"), "pk": "values", "value": value}
    created = container.create_item(body)
    assert content(created) == body and json.dumps(content(created)) == json.dumps(body)
    assert content(container.read_item(body["id"], "values")) == body


def test_properties_keep_their_order_and_names(container):
    names = ["z", "a", "_rid_", "$v", "ü", "a b", "a.b", "a/b", "0", "10", "9", "__proto__", "constructor"]
    body = {"id": fresh("item"), **{name: index for index, name in enumerate(names)}, "pk": "order"}
    container.create_item(body)
    read = container.read_item(body["id"], "order")
    assert list(content(read)) == list(body) and content(read) == body


def test_an_item_sent_as_compact_utf8_is_the_same_item(endpoint, database, container):
    with CosmosClient(endpoint, PRIMARY_KEY, enable_compact_utf8_item_writes=True) as client:
        body = {"id": fresh("item"), "pk": "a", "text": "日本語 ümlaut 😀"}
        client.get_database_client(database.id).get_container_client(container.id).create_item(body)
    assert content(container.read_item(body["id"], "a")) == body


@pytest.mark.parametrize("value", [math.nan, math.inf], ids=repr)
def test_what_json_cannot_say_is_refused(container, value):
    with refused(400):
        container.create_item({"id": fresh("item"), "pk": "a", "value": value})


def test_nesting_has_a_limit(container):
    def nested(depth):
        value = 1
        for _ in range(depth):
            value = [value]
        return {"id": fresh("item"), "pk": "a", "value": value}

    container.create_item(nested(100))
    with refused(400):
        container.create_item(nested(200))


def test_an_item_of_two_mebibytes_is_taken_and_one_byte_more_is_not(container):
    largest = of_size(2 * MEBIBYTE)
    container.create_item(largest)
    assert content(container.read_item(largest["id"], "large")) == largest
    for act in (container.create_item, container.upsert_item, lambda body: container.replace_item(largest["id"], body)):
        with refused(413, "(RequestEntityTooLarge)", 'Message: {"Errors":["Request size is too large"]}'):
            act({**of_size(2 * MEBIBYTE + 1), "id": fresh("large")})
    container.delete_item(largest["id"], "large")


def test_a_body_of_many_mebibytes_is_refused(container):
    with refused(413, "(RequestEntityTooLarge)"):
        container.create_item(of_size(5 * MEBIBYTE))


# Ids


@pytest.mark.parametrize("name", IDS_OF_PYTHON + list(IDS["scripts"].values()), ids=ascii)
def test_an_unusual_id_lives_a_whole_life(make_shared, name):
    container = make_shared
    body = {"id": name, "pk": "ids", "value": 1}
    created = container.create_item(body)
    assert content(created) == body
    assert dict(container.read_item(name, "ids")) == dict(created)
    assert container.replace_item(name, {**body, "value": 2})["value"] == 2
    assert container.upsert_item({**body, "value": 3})["value"] == 3
    assert ids(container.read_all_items()) == [name]
    with refused(409):
        container.create_item(body)
    container.delete_item(name, "ids")
    with refused(404):
        container.read_item(name, "ids")


@pytest.fixture(scope="module")
def make_shared(database):
    """A container that only the tests of ids use, one item at a time."""
    return database.create_container(fresh("ids"), {"paths": ["/pk"], "kind": "Hash", "version": 2})


def test_ids_are_compared_letter_by_letter(make_shared):
    names = ["é", "e\u0301", "É", "e", "E"]
    for name in names:
        make_shared.create_item({"id": name, "pk": "ids"})
    assert ids(make_shared.read_all_items()) == names
    for name in names:
        make_shared.delete_item(name, "ids")


@pytest.mark.parametrize("name", ["a" * 1023, "ü" * 511], ids=["1023 letters", "1022 bytes"])
def test_the_longest_ids_work(make_shared, name):
    make_shared.create_item({"id": name, "pk": "ids"})
    assert make_shared.read_item(name, "ids")["id"] == name
    make_shared.delete_item(name, "ids")


@pytest.mark.parametrize("name", ["", "a" * 1024, "ü" * 600], ids=["empty", "1024 letters", "1200 bytes"])
def test_a_bad_id_is_refused(container, name):
    with refused(400, "Ensure to provide a unique non-empty string less than '1024' characters."):
        container.create_item({"id": name, "pk": "a"})


@pytest.mark.parametrize("body", [{"pk": "a"}, {"id": None, "pk": "a"}], ids=["missing", "null"])
def test_an_item_without_an_id_is_refused(container, body):
    with refused(400):
        container.create_item(body)
    assert "id" not in body or body["id"] is None
