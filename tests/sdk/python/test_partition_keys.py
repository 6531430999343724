"""Partition keys of every kind: values, paths, hashes, hierarchies, the system key."""

import json
import pathlib

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.partition_key import NonePartitionKeyValue, NullPartitionKeyValue

from support import content, fresh, ids, refused

CASES = json.loads((pathlib.Path(__file__).parents[1] / "cases/partition_keys.json").read_text(encoding="utf-8"))
MISMATCH = (
    "Partition key provided either doesn't correspond to definition in the collection or doesn't match "
    "partition key field values specified in the document."
)
DIFFERS = "PartitionKey extracted from document doesn't match the one specified in the header."


def named(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda case: case["name"].replace(" ", "_"))


@pytest.fixture(scope="module", params=[1, 2], ids=["V1", "V2"])
def hashed(request, database):
    """A container for each of the two hashes, with one item per kind of value."""
    container = database.create_container(fresh("hashed"), PartitionKey("/pk", version=request.param))
    for case in CASES["values"]:
        container.create_item({"id": "same", "name": case["name"], **case["item"]})
    return container


@pytest.fixture(scope="module")
def hierarchy(database):
    container = database.create_container(fresh("hierarchy"), PartitionKey(["/tenant", "/user/name", "/session"]))
    for tenant, user, session in HIERARCHY:
        container.create_item({"id": "same", "tenant": tenant, "user": {"name": user}, "session": session})
    return container


HIERARCHY = [("t1", "u1", 1), ("t1", "u1", 2), ("t1", "u2", 1), ("t2", "u1", True), ("t2", None, "s"), (5, "u", "")]


@named(CASES["values"])
def test_a_value_finds_its_item(hashed, case):
    assert hashed.read_item("same", case["key"])["name"] == case["name"]
    if case["key"] is None:
        assert hashed.read_item("same", NullPartitionKeyValue)["name"] == "null"


@named(CASES["values"])
def test_a_value_is_a_partition_of_its_own(hashed, case):
    found = hashed.read_all_items(feed_options={"partitionKey": case["key"]})
    assert [item["name"] for item in found] == [case["name"]]


@named(CASES["values"])
def test_a_client_computes_the_same_hash_for_a_value(hashed, case):
    """The range that the SDK computes for a key, sent as bounds, has exactly the items of that key."""
    version = hashed.read()["partitionKey"].get("version", 1)
    if version == 1 and not isinstance(case["key"], str):
        return  # the Python SDK computes the first hash of numbers and null otherwise than the service
    key = PartitionKey("/pk", version=version)
    epk = key._get_effective_partition_key_string([case["key"]]).upper()
    headers = {
        "x-ms-documentdb-partitionkeyrangeid": "0",
        "x-ms-read-key-type": "EffectivePartitionKeyRange",
        "x-ms-start-epk": epk,
        "x-ms-end-epk": epk + "FF",
    }
    found = hashed.read_all_items(headers=headers)
    assert [item["name"] for item in found] == [case["name"]]


@named([case for case in CASES["undefined"] if case.get("python", True)])
def test_an_item_without_a_value_has_the_undefined_key(make_container, case):
    container = make_container()
    body = {"id": "1", **case["item"]}
    created = container.create_item(body)
    assert content(created) == body
    assert dict(container.read_item("1", NonePartitionKeyValue)) == dict(created)
    for other in (None, "", "undefined"):
        with refused(404):
            container.read_item("1", other)
    container.replace_item("1", {**body, "more": 1})
    container.delete_item("1", NonePartitionKeyValue)
    assert list(container.read_all_items()) == []


@pytest.mark.parametrize(
    "path, item, key",
    [
        ("/a/b/c", {"a": {"b": {"c": "deep"}}}, "deep"),
        ("/a/b", {"a": {"b": None}}, None),
        ('/"first-name"', {"first-name": "Ada"}, "Ada"),
        ('/"a/b"/c', {"a/b": {"c": 7}}, 7),
        ("/ünï", {"ünï": "x"}, "x"),
    ],
)
def test_nested_and_quoted_paths(make_container, path, item, key):
    container = make_container(path)
    container.create_item({"id": "1", **item})
    assert content(container.read_item("1", key)) == {"id": "1", **item}
    with refused(404):
        container.read_item("1", NonePartitionKeyValue)


def test_a_missing_step_of_a_nested_path_is_undefined(make_container):
    container = make_container("/a/b/c")
    for name, item in {"1": {}, "2": {"a": 5}, "3": {"a": {"b": {}}}}.items():
        container.create_item({"id": name, **item})
        assert container.read_item(name, NonePartitionKeyValue)["id"] == name


def test_the_id_as_the_partition_key(make_container):
    container = make_container("/id")
    container.create_item({"id": "x"})
    assert container.read_item("x", "x")["id"] == "x"
    container.delete_item("x", "x")


@pytest.mark.parametrize("key", ["b", 1, None, NonePartitionKeyValue], ids=repr)
@pytest.mark.parametrize("act", ["create", "upsert", "replace"])
def test_a_key_that_is_not_the_items_is_refused(connection, container, act, key):
    body = {"id": fresh("item"), "pk": "a"}
    options = {"partitionKey": container._set_partition_key(key)}
    link = container.container_link
    if act == "replace":
        container.create_item({"id": body["id"], **({} if key is NonePartitionKeyValue else {"pk": key})})
    acts = {
        "create": lambda: connection.CreateItem(link, body, options),
        "upsert": lambda: connection.UpsertItem(link, body, options),
        "replace": lambda: connection.ReplaceItem(f"{link}/docs/{body['id']}", body, options),
    }
    with refused(400, DIFFERS, substatus=1001):
        acts[act]()


def test_replace_cannot_move_an_item_to_another_partition(container):
    body = {"id": fresh("item"), "pk": "a"}
    container.create_item(body)
    # The SDK takes the key from the new body, so it asks for an item of the other partition.
    with refused(404):
        container.replace_item(body["id"], {**body, "pk": "b"})
    assert container.read_item(body["id"], "a")["pk"] == "a"


def test_a_key_of_two_kibibytes_works_and_a_longer_one_does_not(container):
    container.create_item({"id": fresh("item"), "pk": "k" * 2048})
    with refused(400):
        container.create_item({"id": fresh("item"), "pk": "k" * 2049})


# Hierarchies


@pytest.mark.parametrize("key", HIERARCHY, ids=repr)
def test_a_full_hierarchical_key_finds_its_item(hierarchy, key):
    item = hierarchy.read_item("same", list(key))
    assert (item["tenant"], item["user"]["name"], item["session"]) == key


@pytest.mark.parametrize(
    "prefix, count",
    [(["t1"], 3), (["t1", "u1"], 2), (["t2"], 2), (["t2", None], 1), ([5], 1), (["t3"], 0), (["t1", "u1", 2], 1)],
    ids=repr,
)
def test_a_prefix_reads_what_is_below(hierarchy, prefix, count):
    found = list(hierarchy.read_all_items(feed_options={"partitionKey": prefix}))
    keys = [[item["tenant"], item["user"]["name"], item["session"]] for item in found]
    assert len(found) == count and all(key[: len(prefix)] == prefix for key in keys)


@pytest.mark.parametrize("prefix", [["t1"], ["t1", "u1"]], ids=repr)
def test_a_prefix_is_no_key_of_one_item(hierarchy, prefix):
    with refused(400, MISMATCH, substatus=1001):
        hierarchy.read_item("same", prefix)
    with refused(400, MISMATCH, substatus=1001):
        hierarchy.delete_item("same", prefix)


def test_a_missing_level_is_not_null(hierarchy):
    """The SDK sends null for a level that the item lacks, which is another key than the item's."""
    with refused(400, DIFFERS, substatus=1001):
        hierarchy.create_item({"id": fresh("item"), "tenant": "t9", "session": 1})


def test_a_hierarchical_item_lives_a_whole_life(make_container):
    container = make_container(["/a", "/b"])
    body = {"id": "1", "a": "x", "b": 1}
    container.create_item(body)
    container.upsert_item({**body, "value": 2})
    assert container.replace_item("1", {**body, "value": 3})["value"] == 3
    with refused(404):
        container.read_item("1", ["x", 2])
    container.delete_item("1", ["x", 1])
    assert list(container.read_all_items()) == []


# Delete by key


def test_deleting_a_partition_deletes_exactly_its_items(make_container):
    container = make_container()
    for number in range(6):
        container.create_item({"id": str(number), "pk": "gone" if number % 2 else "stays"})
    container.delete_all_items_by_partition_key("gone")
    assert ids(container.read_all_items()) == ["0", "2", "4"]
    with refused(404):
        container.read_item("1", "gone")
    container.delete_all_items_by_partition_key("gone")
    container.create_item({"id": "1", "pk": "gone"})
    assert ids(container.read_all_items(feed_options={"partitionKey": "gone"})) == ["1"]


@pytest.mark.parametrize("key", [5, True, None, ""], ids=repr)
def test_deleting_a_partition_of_any_value(make_container, key):
    container = make_container()
    container.create_item({"id": "1", "pk": key})
    container.create_item({"id": "2", "pk": "other"})
    container.delete_all_items_by_partition_key(key)
    assert ids(container.read_all_items()) == ["2"]


def test_deleting_a_hierarchical_partition(make_container):
    container = make_container(["/a", "/b"])
    for number, (first, second) in enumerate([("x", 1), ("x", 2), ("y", 1)]):
        container.create_item({"id": str(number), "a": first, "b": second})
    container.delete_all_items_by_partition_key(["x", 1])
    assert ids(container.read_all_items()) == ["1", "2"]
