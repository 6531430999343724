"""The change feed: from the beginning, from now, from a time, from a continuation; by key, by range, over the whole
container; in both modes."""

import asyncio
import time
from datetime import datetime, timedelta, timezone

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.aio import CosmosClient as AsyncClient

from server import PRIMARY_KEY, Server
from support import Hook, content, fresh, ids, refused

COUNT = 24
KEYS = 6
KEPT = {"retentionDuration": 10}
ONE_RANGE, FOUR_RANGES = 400, 20_000


def numbers(items):
    return [item["number"] for item in items]


def key(number):
    # The SDK takes the key 0 for none.
    return f"key-{number % KEYS}"


def document(number):
    return {"id": f"item-{number}", "pk": key(number), "number": number}


def fill(container):
    for number in range(COUNT):
        container.create_item(document(number))
    return container


@pytest.fixture(scope="module", params=[ONE_RANGE, FOUR_RANGES], ids=["one range", "four ranges"])
def throughput(request):
    return request.param


@pytest.fixture(scope="module")
def filled(database, throughput):
    container = fill(database.create_container(fresh("filled"), PartitionKey("/pk"), offer_throughput=throughput))
    assert len(list(container.read_feed_ranges(force_refresh=True))) == (1 if throughput == ONE_RANGE else 4)
    return container


@pytest.fixture
def empty(make_container, throughput):
    return make_container(offer_throughput=throughput)


def read(container, **options):
    """What there is until there is nothing new, by page, and where to go on."""
    hook = Hook()
    pages = [list(page) for page in container.query_items_change_feed(response_hook=hook, **options).by_page()]
    assert all(headers["etag"] and float(headers["x-ms-request-charge"]) > 0 for headers in hook.responses)
    return pages, container.client_connection.last_response_headers["etag"]


def items(container, **options):
    return [item for page in read(container, **options)[0] for item in page]


def between_seconds():
    """A time with a second of its own before and after it, as documents are stamped with whole seconds."""
    time.sleep(1.1)
    middle = datetime.now(timezone.utc)
    time.sleep(1.1)
    return middle


@pytest.mark.parametrize("size", [1, 5, 100])
def test_everything_from_the_beginning(filled, size):
    pages, _ = read(filled, start_time="Beginning", max_item_count=size)
    found = [item for page in pages for item in page]
    assert sorted(numbers(found)) == list(range(COUNT))
    assert all(len(page) <= size for page in pages)
    for number in range(KEYS):
        of_key = [item["number"] for item in found if item["pk"] == key(number)]
        assert of_key == sorted(of_key)


def test_an_item_is_as_it_was_written_with_its_commit(filled):
    first = items(filled, start_time="Beginning", partition_key=key(0))[0]
    assert isinstance(first.pop("_lsn"), int)
    assert first == dict(filled.read_item("item-0", key(0)))


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_key_has_its_own_changes(filled, size):
    for number in range(KEYS):
        found = items(filled, start_time="Beginning", partition_key=key(number), max_item_count=size)
        assert numbers(found) == list(range(number, COUNT, KEYS))
    assert items(filled, start_time="Beginning", partition_key="nobody") == []


def test_feed_ranges_have_every_change_once(filled):
    parts = [items(filled, start_time="Beginning", feed_range=one) for one in filled.read_feed_ranges()]
    assert sorted(numbers(item for part in parts for item in part)) == list(range(COUNT))


def test_a_feed_range_of_a_key_is_narrower_than_its_range(filled):
    child = filled.feed_range_from_partition_key(key(3))
    assert numbers(items(filled, start_time="Beginning", feed_range=child)) == list(range(3, COUNT, KEYS))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_ranges_are_read_by_id(connection, filled):
    """The old way, whose token is the etag alone. The SDK takes the id and does not send it, so it is sent by hand."""
    parts = []
    for one in connection._ReadPartitionKeyRanges(filled.container_link):
        by_id = {
            "partition_key_range_id": one["id"],
            "headers": {"x-ms-documentdb-partitionkeyrangeid": one["id"]},
            "is_start_from_beginning": True,
        }
        pages, end = read(filled, **by_id)
        parts += [item for page in pages for item in page]
        assert end.strip('"').isdigit()
        assert items(filled, continuation=end, **by_id) == []
    assert sorted(numbers(parts)) == list(range(COUNT))


@pytest.mark.parametrize("scope", ["container", "key", "feed range"])
def test_it_goes_on_from_every_continuation(empty, scope):
    options = {
        "container": {},
        "key": {"partition_key": key(1)},
        "feed range": {"feed_range": next(iter(empty.read_feed_ranges()))},
    }[scope]
    # The SDK reads its own tokens only once it has been to every range.
    _, start = read(empty, **options)
    fill(empty)
    whole = sorted(numbers(items(empty, start_time="Beginning", **options)))
    pages = empty.query_items_change_feed(continuation=start, max_item_count=1).by_page()
    seen = []
    for page in pages:
        seen += numbers(page)
        rest = items(empty, continuation=pages.continuation_token)
        assert sorted(seen + numbers(rest)) == whole
    assert sorted(seen) == whole


def test_from_now(empty):
    empty.create_item({"id": "before", "pk": "k"})
    (pages, everything), (_, of_key) = read(empty), read(empty, start_time="Now", partition_key="k")
    assert pages == []
    for name in "klmn":
        empty.create_item({"id": name, "pk": name})
    assert sorted(ids(items(empty, continuation=everything))) == list("klmn")
    assert ids(items(empty, continuation=of_key)) == ["k"]
    # A changed item comes again, a deleted one does not.
    pages, later = read(empty, continuation=everything)
    empty.upsert_item({"id": "k", "pk": "k", "changed": True})
    empty.delete_item("l", "l")
    assert [(item["id"], item["changed"]) for item in items(empty, continuation=later)] == [("k", True)]


def test_from_a_time(empty):
    for number in range(3):
        empty.create_item({"id": f"early-{number}", "pk": key(number)})
    middle = between_seconds()
    for number in range(3):
        empty.create_item({"id": f"late-{number}", "pk": key(number)})
    assert sorted(ids(items(empty, start_time=middle))) == ["late-0", "late-1", "late-2"]
    assert ids(items(empty, start_time=middle, partition_key=key(1))) == ["late-1"]
    assert len(items(empty, start_time=datetime(2000, 1, 1, tzinfo=timezone.utc))) == 6
    assert items(empty, start_time=datetime.now(timezone.utc) + timedelta(hours=1)) == []


def test_the_feed_of_a_prefix_of_a_key(make_container, throughput):
    tree = make_container(PartitionKey(["/a", "/b"]), offer_throughput=throughput)
    for number in range(COUNT):
        tree.create_item({"id": str(number), "a": number % 2, "b": number % 4, "number": number})
    assert sorted(numbers(items(tree, start_time="Beginning", partition_key=[1]))) == list(range(1, COUNT, 2))
    assert numbers(items(tree, start_time="Beginning", partition_key=[1, 3])) == list(range(3, COUNT, 4))


def test_a_batch_stays_together(make_container):
    container = make_container()
    container.execute_item_batch([("create", ({"id": name, "pk": "a"},)) for name in "123"], "a")
    assert [ids(page) for page in read(container, start_time="Beginning", partition_key="a", max_item_count=1)[0]] == [
        ["1", "2", "3"]
    ]


def test_all_versions_and_deletes(make_container, throughput):
    container = make_container(offer_throughput=throughput, change_feed_policy=KEPT)
    assert container.read()["changeFeedPolicy"]["retentionDuration"] == 10
    container.create_item({"id": "before", "pk": "b"})
    mode = {"mode": "AllVersionsAndDeletes", "max_item_count": 2}
    _, everything = read(container, **mode)
    _, of_key = read(container, partition_key="a", **mode)
    container.create_item({"id": "1", "pk": "a", "n": 1})
    container.upsert_item({"id": "1", "pk": "a", "n": 2})
    container.patch_item("1", "a", [{"op": "incr", "path": "/n", "value": 5}])
    container.delete_item("1", "a")
    container.create_item({"id": "2", "pk": "c"})
    changes = items(container, continuation=of_key, max_item_count=2)
    metadata = [change["metadata"] for change in changes]
    assert [one["operationType"] for one in metadata] == ["create", "replace", "replace", "delete"]
    assert [content(change["current"]).get("n") for change in changes] == [1, 2, 7, None]
    # Only for accounts that ask for them.
    assert not any("previous" in change for change in changes)
    assert metadata[1]["previousImageLSN"] == metadata[0]["lsn"]
    assert (metadata[3]["id"], metadata[3]["partitionKey"]) == ("1", {"pk": "a"})
    assert all(abs(one["crts"] - time.time()) < 600 for one in metadata)
    found = items(container, continuation=everything)
    assert len(found) == 5 and [change for change in found if change["current"].get("id") != "2"] == changes


def test_all_versions_need_a_policy(filled):
    with refused(400):
        items(filled, mode="AllVersionsAndDeletes")


def test_a_continuation_outlives_a_kill(tmp_path):
    server = Server(tmp_path / "data")
    try:
        with CosmosClient(server.endpoint("http"), PRIMARY_KEY) as client:
            database = client.create_database("d")
            for throughput in (ONE_RANGE, FOUR_RANGES):
                options = {"partition_key": PartitionKey("/pk"), "offer_throughput": throughput}
                container = database.create_container(f"c-{throughput}", **options)
                _, start = read(container)
                fill(container)
                kept = database.create_container(f"kept-{throughput}", change_feed_policy=KEPT, **options)
                _, versions = read(kept, mode="AllVersionsAndDeletes")
                kept.create_item({"id": "1", "pk": "a"})
                kept.delete_item("1", "a")
                pages = container.query_items_change_feed(continuation=start, max_item_count=5).by_page()
                head = numbers(next(pages))
                _, end = read(container, start_time="Beginning")
                server.kill()
                server.start()
                rest = items(container, continuation=pages.continuation_token)
                assert sorted(head + numbers(rest)) == list(range(COUNT))
                assert items(container, continuation=end) == []
                container.create_item({"id": "later", "pk": 0})
                assert ids(items(container, continuation=end)) == ["later"]
                changes = items(kept, continuation=versions)
                assert [change["metadata"]["operationType"] for change in changes] == ["create", "delete"]
    finally:
        server.stop()


def test_the_asynchronous_client(endpoint, throughput):
    async def act():
        async with AsyncClient(endpoint, PRIMARY_KEY) as client:
            database = await client.create_database(fresh("async"))
            container = await database.create_container("c", PartitionKey("/pk"), offer_throughput=throughput)

            async def read(**options):
                found = [item async for item in container.query_items_change_feed(**options)]
                return found, container.client_connection.last_response_headers["etag"]

            _, now = await read()
            for number in range(COUNT):
                await container.create_item(document(number))
            found, _ = await read(start_time="Beginning", max_item_count=5)
            assert sorted(numbers(found)) == list(range(COUNT))
            found, _ = await read(start_time="Beginning", partition_key=key(2))
            assert numbers(found) == list(range(2, COUNT, KEYS))
            parts = [await read(start_time="Beginning", feed_range=one) async for one in container.read_feed_ranges()]
            assert sorted(numbers(item for part, _ in parts for item in part)) == list(range(COUNT))
            found, end = await read(continuation=now)
            assert sorted(numbers(found)) == list(range(COUNT))
            assert (await read(continuation=end))[0] == []
            await client.delete_database(database)

    asyncio.run(act())
