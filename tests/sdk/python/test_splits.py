"""Ranges that split while a client works: its routing, pages, feeds and sessions of before go on."""

import threading

from azure.cosmos import PartitionKey

from support import fresh, ids

KEYS = [f"key {number}" for number in range(60)]


def filled(database):
    container = database.create_container(fresh("splits"), PartitionKey("/pk"), offer_throughput=400)
    for key in KEYS:
        container.create_item({"id": key, "pk": key, "n": 1})
    return container


def split(container, throughput):
    assert container.replace_throughput(throughput).offer_throughput == throughput


def test_pages_of_queries_go_on(database):
    # Queries that the SDK merges it begins anew when a range is gone, whatever the server says, and gives rows twice.
    for text in ["SELECT * FROM c", "SELECT * FROM c WHERE c.n = 1", "SELECT VALUE c FROM c WHERE c.id >= 'key'"]:
        container = filled(database)
        pages = container.query_items(text, enable_cross_partition_query=True, max_item_count=7).by_page()
        found = ids(next(pages))
        split(container, 11_000)
        found += ids(next(pages))
        split(container, 40_000)
        for page in pages:
            found += ids(page)
        assert sorted(found) == sorted(KEYS), text


def test_reads_writes_and_sessions_go_on(database):
    container = filled(database)
    for throughput in [11_000, 25_000, 40_000]:
        split(container, throughput)
        for key in KEYS:
            container.upsert_item({"id": key, "pk": key, "n": throughput})
            assert container.read_item(key, key)["n"] == throughput
        assert sorted(ids(container.read_items([(key, key) for key in KEYS]))) == sorted(KEYS)
    assert len(list(container.read_feed_ranges(force_refresh=True))) == 4
    [count] = container.query_items("SELECT VALUE COUNT(1) FROM c", enable_cross_partition_query=True)
    assert count == len(KEYS)


def test_the_change_feed_goes_on(database):
    container = filled(database)
    assert sorted(ids(container.query_items_change_feed(start_time="Beginning"))) == sorted(KEYS)
    etag = container.client_connection.last_response_headers["etag"]
    split(container, 20_000)
    for key in KEYS[:10]:
        container.upsert_item({"id": key, "pk": key, "n": 2})
    container.create_item({"id": "new", "pk": "new", "n": 3})
    assert sorted(ids(container.query_items_change_feed(continuation=etag))) == sorted([*KEYS[:10], "new"])


def test_writers_beside_splits_lose_nothing(database):
    container = filled(database)
    written, failures, is_over = [0] * len(KEYS), [], threading.Event()

    def write():
        try:
            while not is_over.is_set():
                for place, key in enumerate(KEYS):
                    container.patch_item(key, key, [{"op": "incr", "path": "/n", "value": 1}])
                    written[place] += 1
        except Exception as failure:  # pylint: disable=broad-except
            failures.append(failure)

    writer = threading.Thread(target=write)
    writer.start()
    for throughput in [11_000, 20_100, 30_100, 40_100]:
        split(container, throughput)
    is_over.set()
    writer.join()
    assert failures == []
    for place, key in enumerate(KEYS):
        assert container.read_item(key, key)["n"] == 1 + written[place]
