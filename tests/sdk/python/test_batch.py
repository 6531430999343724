"""Transactional batches: all operations or none, and a result for each."""

import copy
import threading

import pytest
from azure.cosmos import exceptions

from support import content, fresh, ids, refused

OLD_ETAG = '"00000000-0000-0000-0000-000000000000"'
SET_ONE = [{"op": "set", "path": "/n", "value": 1}]


def statuses(results) -> list[int]:
    return [result["statusCode"] for result in results]


def undone(container, operations, key) -> list[int]:
    """Sends a batch that fails; gives the statuses of its operations."""
    with pytest.raises(exceptions.CosmosBatchOperationError) as caught:
        # The SDK takes the options out of what it is given.
        container.execute_item_batch(copy.deepcopy(operations), key)
    error = caught.value
    assert error.status_code == error.operation_responses[error.error_index]["statusCode"]
    return statuses(error.operation_responses)


def stored(container, key) -> list[str]:
    return sorted(ids(container.query_items("SELECT c.id FROM c", partition_key=key)))


def test_every_kind_of_operation(container):
    key = fresh("key")
    container.create_item({"id": "old", "pk": key, "n": 1})
    container.create_item({"id": "gone", "pk": key})
    results = container.execute_item_batch(
        [
            ("create", ({"id": "new", "pk": key},)),
            ("upsert", ({"id": "upserted", "pk": key},)),
            ("replace", ("old", {"id": "old", "pk": key, "n": 5})),
            ("patch", ("old", [{"op": "incr", "path": "/n", "value": 2}])),
            ("read", ("old",)),
            ("delete", ("gone",)),
        ],
        key,
    )
    assert statuses(results) == [201, 201, 200, 200, 200, 204]
    assert content(results[4]["resourceBody"]) == {"id": "old", "pk": key, "n": 7}
    assert results[3]["eTag"] == results[4]["eTag"] == results[4]["resourceBody"]["_etag"]
    assert "resourceBody" not in results[5]
    assert float(results.get_response_headers()["x-ms-request-charge"]) > 0
    assert stored(container, key) == ["new", "old", "upserted"]


def test_a_failure_undoes_all(container):
    key = fresh("key")
    container.create_item({"id": "there", "pk": key, "n": 1})
    operations = [
        ("create", ({"id": "new", "pk": key},)),
        ("patch", ("there", [{"op": "set", "path": "/n", "value": 9}])),
        ("create", ({"id": "there", "pk": key},)),
        ("delete", ("there",)),
    ]
    assert undone(container, operations, key) == [424, 424, 409, 424]
    assert stored(container, key) == ["there"]
    assert container.read_item("there", key)["n"] == 1


@pytest.mark.parametrize(
    ("status", "operation"),
    [
        (404, ("read", ("none",))),
        (404, ("delete", ("none",))),
        (404, ("replace", ("none", {"id": "none", "pk": "failures"}))),
        (404, ("patch", ("none", SET_ONE))),
        (400, ("create", ({"id": "x", "pk": "another"},))),
        (400, ("patch", ("there", [{"op": "replace", "path": "/none", "value": 1}]))),
        (412, ("delete", ("there",), {"if_match_etag": OLD_ETAG})),
        (412, ("replace", ("there", {"id": "there", "pk": "failures"}), {"if_match_etag": OLD_ETAG})),
        (412, ("patch", ("there", SET_ONE), {"filter_predicate": "from c where c.n = 9"})),
    ],
)
def test_operations_fail_as_they_do_alone(container, status, operation):
    container.upsert_item({"id": "there", "pk": "failures", "n": 0})
    assert undone(container, [operation], "failures") == [status]
    assert container.read_item("there", "failures")["n"] == 0


def test_conditions_that_hold(container):
    key = fresh("key")
    etag = container.create_item({"id": "1", "pk": key, "n": 1})["_etag"]
    results = container.execute_item_batch(
        [
            ("replace", ("1", {"id": "1", "pk": key, "n": 2}), {"if_match_etag": etag}),
            ("patch", ("1", [{"op": "incr", "path": "/n", "value": 1}]), {"filter_predicate": "from c where c.n = 2"}),
        ],
        key,
    )
    assert statuses(results) == [200, 200]
    assert results[1]["resourceBody"]["n"] == 3


def test_a_hundred_operations_are_the_most(container):
    key = fresh("key")
    creates = [("create", ({"id": str(number), "pk": key},)) for number in range(101)]
    with refused(400, "Batch request has more operations than what is supported."):
        container.execute_item_batch(creates, key)
    assert stored(container, key) == []
    container.execute_item_batch(creates[:100], key)
    assert len(stored(container, key)) == 100


def test_two_mebibytes_are_the_most(container):
    key = fresh("key")
    large = {"id": "large", "pk": key, "text": "x" * (2 << 20)}
    with refused(413, "Request size is too large"):
        container.execute_item_batch([("create", (large,))], key)
    assert stored(container, key) == []


def test_nothing_to_do_is_refused(container):
    with refused(400, "Batch request has no operations."):
        container.execute_item_batch([], "a")


def test_hierarchical_keys(make_container):
    container = make_container({"paths": ["/a", "/b"], "kind": "MultiHash", "version": 2})
    operations = [("create", ({"id": "1", "a": "x", "b": 1},)), ("read", ("1",))]
    assert statuses(container.execute_item_batch(operations, ["x", 1])) == [201, 200]
    with refused(400, substatus=1001):
        container.execute_item_batch(operations, ["x"])


def test_transfers_between_two_items_lose_nothing(container):
    key = fresh("key")
    for name in ("from", "to"):
        container.create_item({"id": name, "pk": key, "n": 100})
    transfer = [
        ("patch", ("from", [{"op": "incr", "path": "/n", "value": -1}])),
        ("patch", ("to", [{"op": "incr", "path": "/n", "value": 1}])),
    ]
    threads = [
        threading.Thread(target=lambda: [container.execute_item_batch(transfer, key) for _ in range(5)])
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [container.read_item(name, key)["n"] for name in ("from", "to")] == [70, 130]
