"""Reading many items: pages, continuation tokens, order, key ranges and feed ranges, the conflicts feed."""

import pytest
from azure.cosmos import PartitionKey

from support import Hook, fresh, ids, refused

COUNT = 25


@pytest.fixture(scope="module")
def filled(database):
    """Twenty-five items over five partitions; neither ids nor keys are in the order of creation."""
    container = database.create_container(fresh("filled"), PartitionKey("/pk"))
    for number in range(COUNT):
        container.create_item({"id": f"item-{number * 7 % COUNT:02}", "pk": number % 5, "number": number})
    return container


def numbers(items):
    return [item["number"] for item in items]


@pytest.mark.parametrize("size", [1, 2, 7, 24, 25, 26, 1000, -1])
def test_pages_of_any_size_have_all_items_in_insertion_order(filled, size):
    pages = [list(page) for page in filled.read_all_items(max_item_count=size).by_page()]
    assert numbers(item for page in pages for item in page) == list(range(COUNT))
    if size > 0:
        assert all(len(page) <= size for page in pages)


def test_a_page_tells_its_count_and_whether_there_is_more(connection, filled):
    hook = Hook()
    list(connection.ReadItems(filled.container_link, {"maxItemCount": 10}, response_hook=hook))
    counts = [int(headers["x-ms-item-count"]) for headers in hook.responses]
    assert sum(counts) == COUNT and counts[0] == 10
    assert all(headers.get("x-ms-continuation") for headers in hook.responses[:-1])
    assert "x-ms-continuation" not in hook.responses[-1]
    assert all(float(headers["x-ms-request-charge"]) > 0 for headers in hook.responses)


def test_a_feed_goes_on_from_its_continuation_token(client, database, filled):
    pages = filled.read_all_items(max_item_count=7).by_page()
    head = numbers(next(pages))
    token = pages.continuation_token
    assert token and token.isascii() and len(token) < 1024
    again = client.get_database_client(database.id).get_container_client(filled.id)
    for _ in range(2):
        rest = again.read_all_items(max_item_count=11).by_page(token)
        assert head + [item["number"] for page in rest for item in page] == list(range(COUNT))


def test_items_written_meanwhile_do_not_disturb_the_pages(make_container):
    container = make_container()
    for number in range(6):
        container.create_item({"id": str(number), "pk": "a"})
    pages = container.read_all_items(max_item_count=2).by_page()
    assert ids(next(pages)) == ["0", "1"]
    container.delete_item("0", "a")
    container.delete_item("3", "a")
    container.create_item({"id": "6", "pk": "a"})
    container.upsert_item({"id": "1", "pk": "a", "changed": True})
    assert [item["id"] for page in pages for item in page] == ["2", "4", "5", "6"]


@pytest.mark.parametrize("token", ["garbage", "{}", "[]", "AAAA", "é"])
def test_a_garbage_continuation_token_is_refused(filled, token):
    with refused(400, "Invalid Continuation Token"):
        next(filled.read_all_items(headers={"x-ms-continuation": token.encode()}).by_page())


@pytest.mark.parametrize("size", ["many", "-2"])
def test_a_bad_page_size_is_refused(filled, size):
    with refused(400):
        list(filled.read_all_items(headers={"x-ms-max-item-count": size}))


@pytest.mark.parametrize("size", [1, 2, 100])
@pytest.mark.parametrize("key", range(5))
def test_the_items_of_one_partition(filled, key, size):
    found = filled.read_all_items(max_item_count=size, feed_options={"partitionKey": key})
    assert numbers(found) == list(range(key, COUNT, 5))


def test_an_empty_container_has_an_empty_feed(connection, make_container):
    hook = Hook()
    assert list(connection.ReadItems(make_container().container_link, response_hook=hook)) == []
    assert hook.headers["x-ms-item-count"] == "0" and "x-ms-continuation" not in hook.headers


def test_a_page_stops_at_its_bytes(make_container):
    container = make_container()
    for number in range(4):
        container.create_item({"id": str(number), "pk": "a", "text": "x" * 1_500_000})
    pages = [ids(page) for page in container.read_all_items(max_item_count=-1).by_page()]
    assert [name for page in pages for name in page] == ["0", "1", "2", "3"]
    assert len(pages) > 1


# Key ranges and feed ranges


def test_one_key_range_covers_everything(connection, filled):
    ranges = list(connection._ReadPartitionKeyRanges(filled.container_link))
    assert [(one["id"], one["minInclusive"], one["maxExclusive"]) for one in ranges] == [("0", "", "FF")]
    assert ranges[0]["status"] == "online" and ranges[0]["parents"] == []
    assert ranges[0]["_rid"] and ranges[0]["_self"].startswith(filled.read()["_self"] + "pkranges/")


def test_the_key_ranges_are_read_by_rid_too(connection, filled):
    by_name = list(connection._ReadPartitionKeyRanges(filled.container_link))
    by_rid = list(connection._ReadPartitionKeyRanges(filled.read()["_self"]))
    assert [one["id"] for one in by_name] == [one["id"] for one in by_rid]


def test_feed_ranges_cover_every_key(filled):
    ranges = list(filled.read_feed_ranges(force_refresh=True))
    assert len(ranges) == 1
    for key in ("a", 5, None, True):
        child = filled.feed_range_from_partition_key(key)
        assert filled.is_feed_range_subset(ranges[0], child)


def test_the_halves_of_the_key_space_have_each_item_once(filled):
    middle = "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"

    def half(start, end):
        headers = {"x-ms-start-epk": start, "x-ms-end-epk": end, "x-ms-read-key-type": "EffectivePartitionKeyRange"}
        return numbers(
            filled.read_all_items(headers=headers | {"x-ms-documentdb-partitionkeyrangeid": "0"}, max_item_count=2)
        )

    low, high = half("", middle), half(middle, "FF")
    assert low and high and sorted(low + high) == list(range(COUNT))
    assert low == sorted(low) and high == sorted(high)


def test_a_key_range_that_is_not_there_is_gone(connection, filled):
    """Python retries 410/1002 with fresh ranges, so one request is sent by hand."""
    with refused(410, substatus=1002):
        list(filled.read_all_items(headers={"x-ms-documentdb-partitionkeyrangeid": "77"}))


# Feeds that are always empty here


def test_the_conflicts_feed_is_empty(filled):
    assert list(filled.list_conflicts()) == []
    query = "SELECT * FROM root r WHERE r.resourceType = 'document'"
    assert list(filled.query_conflicts(query, partition_key="a")) == []
    assert list(filled.query_conflicts(query, enable_cross_partition_query=True)) == []
    with refused(400, "Cross partition query is required but disabled"):
        list(filled.query_conflicts(query))
    with refused(404):
        filled.get_conflict("missing", "a")
    with refused(404):
        filled.delete_conflict("missing", "a")
