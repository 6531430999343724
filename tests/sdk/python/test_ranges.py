"""Containers of several key ranges: the SDK's own routing, feed ranges, reads of many items and sessions over them."""

import base64
import json
import re

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from server import PRIMARY_KEY
from support import Hook, fresh, ids, refused

TWO_RANGES, FIVE_RANGES = 12_000, 30_000
KEYS = [f"key {number}" for number in range(40)]
SESSION_TOKEN = re.compile(r"(\d+):-1#(\d+)")


@pytest.fixture(scope="module", params=[(TWO_RANGES, 2), (FIVE_RANGES, 5)], ids=["two ranges", "five ranges"])
def spread(request, database, connection):
    """A container of several ranges with an item of every key."""
    throughput, count = request.param
    container = database.create_container(fresh("ranges"), PartitionKey("/pk"), offer_throughput=throughput)
    for key in KEYS:
        container.create_item({"id": key, "pk": key, "n": 1})
    assert len(list(connection._ReadPartitionKeyRanges(container.container_link))) == count
    return container


@pytest.fixture
def ranges(connection, spread):
    return list(connection._ReadPartitionKeyRanges(spread.container_link))


def effective(container, key) -> str:
    """The effective key that the SDK computes: the beginning of the feed range of a key."""
    text = container.feed_range_from_partition_key(key)
    text = text if isinstance(text, dict) else json.loads(base64.b64decode(text))
    return text["Range"]["min"]


def test_the_ranges_tile_the_space_of_keys(ranges):
    assert [one["minInclusive"] for one in ranges] == [""] + [one["maxExclusive"] for one in ranges[:-1]]
    assert ranges[-1]["maxExclusive"] == "FF"
    assert [one["id"] for one in ranges] == [str(number) for number in range(len(ranges))]
    assert all(one["parents"] == [] and one["status"] == "online" for one in ranges)


def test_an_item_lives_in_the_range_that_the_sdk_computes(spread, ranges):
    served = set()
    for key in KEYS:
        hook = Hook()
        spread.read_item(key, key, response_hook=hook)
        [home] = [one for one in ranges if one["minInclusive"] <= effective(spread, key).upper() < one["maxExclusive"]]
        assert hook.headers["x-ms-documentdb-partitionkeyrangeid"] == home["id"]
        served.add(home["id"])
    assert served == {one["id"] for one in ranges}, "the keys fall into all ranges"


def test_every_operation_finds_its_range(spread):
    for key in KEYS[:15]:
        name = fresh("item")
        spread.create_item({"id": name, "pk": key, "n": 1})
        spread.upsert_item({"id": name, "pk": key, "n": 2})
        spread.replace_item(name, {"id": name, "pk": key, "n": 3})
        patched = spread.patch_item(name, key, [{"op": "incr", "path": "/n", "value": 4}])
        assert patched["n"] == 7
        spread.execute_item_batch([("read", (name,)), ("delete", (name,))], key)
        with refused(404):
            spread.read_item(name, key)


@pytest.mark.parametrize("size", [None, 1, 7])
def test_the_feed_ranges_have_every_item_once(spread, ranges, size):
    found = []
    for one in spread.read_feed_ranges():
        query = spread.query_items("SELECT * FROM c WHERE c.n = 1 AND c.id = c.pk", feed_range=one, max_item_count=size)
        found += ids(query)
    assert sorted(found) == sorted(KEYS)
    assert len(list(spread.read_feed_ranges())) == len(ranges)


def test_many_items_are_read_at_once(spread):
    wanted = [(key, key) for key in KEYS]
    found = spread.read_items(wanted + [("absent", KEYS[0]), (KEYS[0], KEYS[1])])
    assert sorted(ids(found)) == sorted(KEYS)


def test_a_session_has_a_position_for_every_range(endpoint, database, spread, ranges):
    with CosmosClient(endpoint, PRIMARY_KEY) as writer, CosmosClient(endpoint, PRIMARY_KEY) as reader:
        written = writer.get_database_client(database.id).get_container_client(spread.id)
        positions = {}
        for key in KEYS:
            headers = written.upsert_item({"id": key, "pk": key, "n": 1}).get_response_headers()
            name, lsn = SESSION_TOKEN.fullmatch(headers["x-ms-session-token"]).groups()
            assert name == headers["x-ms-documentdb-partitionkeyrangeid"]
            positions[name] = int(lsn)
        assert positions.keys() == {one["id"] for one in ranges}
        kept = writer.client_connection.session.session_container.rid_to_session_token[written.read()["_rid"]]
        assert {name: token.global_lsn for name, token in kept.items()} == positions
        # The other client has seen nothing, and reads what it is given the token of.
        read = reader.get_database_client(database.id).get_container_client(spread.id)
        joined = ",".join(f"{name}:-1#{lsn}" for name, lsn in positions.items())
        for key in KEYS:
            hook = Hook()
            assert read.read_item(key, key, session_token=joined, response_hook=hook)["n"] == 1
            home = hook.headers["x-ms-documentdb-partitionkeyrangeid"]
            for name, lsn in positions.items():
                ahead = f"{name}:-1#{lsn + 1000}"
                if name != home:
                    read.read_item(key, key, session_token=ahead)
            with refused(404, substatus=1002):
                read.read_item(key, key, session_token=f"{joined},{home}:-1#{positions[home] + 1000}")
