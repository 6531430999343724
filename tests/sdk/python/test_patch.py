"""Patch: parts of an item are changed, all of them or none."""

import threading

import pytest
from azure.core import MatchConditions

from support import content, fresh, refused

OLD_ETAG = '"00000000-0000-0000-0000-000000000000"'


@pytest.fixture
def item(container):
    """A new item in a partition of its own."""
    body = {"id": fresh("item"), "pk": fresh("key"), "n": 1, "list": [1, 2], "inner": {"x": "y"}, "a/b": 0}
    return container.create_item(body)


def test_every_kind_of_operation(container, item):
    patched = container.patch_item(
        item["id"],
        item["pk"],
        [
            {"op": "add", "path": "/list/1", "value": 9},
            {"op": "add", "path": "/list/-", "value": 10},
            {"op": "set", "path": "/new", "value": {"a": None}},
            {"op": "replace", "path": "/inner/x", "value": "z"},
            {"op": "incr", "path": "/n", "value": 2.5},
            {"op": "move", "from": "/inner/x", "path": "/moved"},
            {"op": "remove", "path": "/list/0"},
            {"op": "incr", "path": "/a~1b", "value": 1},
        ],
    )
    expected = {**content(item), "n": 3.5, "list": [9, 2, 10], "inner": {}, "new": {"a": None}, "moved": "z", "a/b": 1}
    assert content(patched) == expected
    assert patched["_etag"] != item["_etag"]
    assert patched["_rid"] == item["_rid"]
    assert dict(container.read_item(item["id"], item["pk"])) == dict(patched)
    query = "SELECT VALUE c.id FROM c WHERE c.moved = 'z' AND c.n = 3.5"
    assert list(container.query_items(query, partition_key=item["pk"])) == [item["id"]]


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        ([{"op": "replace", "path": "/none", "value": 1}], "Node(/none) to be replaced is absent."),
        ([{"op": "remove", "path": "/none"}], "Node(/none) to be removed is absent."),
        ([{"op": "add", "path": "/list/9", "value": 1}], "Index(9) to operate on is out of array bounds."),
        ([{"op": "add", "path": "/x/y", "value": 1}], "cannot create path recursively"),
        ([{"op": "incr", "path": "/inner", "value": 1}], "Node(/inner) is not a number."),
        ([{"op": "set", "path": "/_ts", "value": 1}], "Cannot patch system property _ts."),
        ([{"op": "set", "path": "/id", "value": "x"}], "Cannot patch system property id."),
        ([{"op": "set", "path": "/pk", "value": "x"}], "partition key"),
        ([{"op": "incr", "path": "/n", "value": 1}] * 11, "The number of patch operations cannot exceed 10."),
        ([], "check syntax of patch specification"),
        ([{"op": "set", "path": "/n", "value": 7}, {"op": "remove", "path": "/none"}], "For Operation(2)"),
    ],
)
def test_a_refused_patch_changes_nothing(container, item, operations, message):
    with refused(400, message):
        container.patch_item(item["id"], item["pk"], operations)
    assert dict(container.read_item(item["id"], item["pk"])) == dict(item)


def test_a_missing_item_is_not_found(container):
    with refused(404):
        container.patch_item("none", "a", [{"op": "set", "path": "/n", "value": 1}])


def test_the_condition_must_select_the_item(container, item):
    increment = [{"op": "incr", "path": "/n", "value": 1}]
    condition = "from c where c.n = 1 and c._etag != ''"
    patched = container.patch_item(item["id"], item["pk"], increment, filter_predicate=condition)
    assert patched["n"] == 2
    with refused(412):
        container.patch_item(item["id"], item["pk"], increment, filter_predicate=condition)
    with refused(400):
        container.patch_item(item["id"], item["pk"], increment, filter_predicate="from c where")
    assert container.read_item(item["id"], item["pk"])["n"] == 2


def test_the_version_must_be_the_one_that_is_meant(container, item):
    increment = [{"op": "incr", "path": "/n", "value": 1}]
    unmodified = MatchConditions.IfNotModified
    with refused(412):
        container.patch_item(item["id"], item["pk"], increment, etag=OLD_ETAG, match_condition=unmodified)
    patched = container.patch_item(
        item["id"], item["pk"], increment, etag=item["_etag"], match_condition=unmodified
    )
    assert patched["n"] == 2


def test_no_content_if_none_is_wanted(container, item):
    answer = container.patch_item(
        item["id"], item["pk"], [{"op": "set", "path": "/n", "value": 5}], no_response=True
    )
    assert dict(answer) == {}
    assert container.read_item(item["id"], item["pk"])["n"] == 5


def test_increments_of_many_clients_all_count(container, item):
    increment = [{"op": "incr", "path": "/n", "value": 1}]
    threads = [
        threading.Thread(
            target=lambda: [container.patch_item(item["id"], item["pk"], increment) for _ in range(10)]
        )
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert container.read_item(item["id"], item["pk"])["n"] == 61
