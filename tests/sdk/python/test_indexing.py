"""Indexing policies: what they refuse, what they leave alone, what the metrics say; unique keys; changes of a policy."""

import copy
import json
import pathlib
import time

import pytest
from azure.cosmos import PartitionKey, exceptions

from support import Hook, fresh, ids, refused

CASES = json.loads((pathlib.Path(__file__).parents[1] / "cases/indexing.json").read_text(encoding="utf-8"))
POLICY = CASES["definition"]["indexingPolicy"]
CROSS_PARTITION = {"enable_cross_partition_query": True}
PROGRESS = "x-ms-documentdb-collection-index-transformation-progress"
UTILIZATION = "x-ms-cosmos-index-utilization"
RANGES_THROUGHPUT = 30_000
"""Enough for five key ranges."""
BUILD_SECONDS_MAX = 300


def named(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda case: case["name"].replace(" ", "_"))


def filled(database, **options):
    container = database.create_container(
        fresh("indexed"), PartitionKey("/pk"), indexing_policy=POLICY, **options
    )
    for document in CASES["documents"]:
        container.create_item(document)
    return container


@pytest.fixture(scope="module")
def indexed(database):
    return filled(database)


@pytest.fixture(scope="module")
def ranges(database):
    return filled(database, offer_throughput=RANGES_THROUGHPUT)


@named(CASES["queries"])
def test_a_policy_changes_no_rows(indexed, ranges, case):
    for size in (None, 1, 4):
        rows = indexed.query_items(case["query"], max_item_count=size, **CROSS_PARTITION)
        assert ids(rows) == case["ids"]
        merged = ids(ranges.query_items(case["query"], max_item_count=size, **CROSS_PARTITION))
        assert merged == case["ids"] if "ORDER BY" in case["query"] else sorted(merged) == sorted(case["ids"])


@named(CASES["refusals"])
def test_orders_without_an_index_are_refused(indexed, ranges, case):
    for container in (indexed, ranges):
        with refused(400, case["message"]):
            list(container.query_items(case["query"], **CROSS_PARTITION))
    with refused(400, case["message"]):
        list(indexed.query_items(case["query"], partition_key="a"))


@named(CASES["metrics"])
def test_metrics_name_indexes(indexed, case):
    hook = Hook()
    list(
        indexed.query_items(case["query"], populate_index_metrics=True, response_hook=hook, **CROSS_PARTITION)
    )
    metrics = hook.headers[UTILIZATION]
    specs = {
        "utilized": [index["IndexSpec"] for index in metrics["UtilizedSingleIndexes"]],
        "potential": [index["IndexSpec"] for index in metrics["PotentialSingleIndexes"]],
        "utilizedComposite": [index["IndexSpecs"] for index in metrics["UtilizedCompositeIndexes"]],
        "potentialComposite": [index["IndexSpecs"] for index in metrics["PotentialCompositeIndexes"]],
    }
    for kind, found in specs.items():
        for spec in case[kind]:
            assert spec in found, f"{kind}: {spec} is not in {found}"
    assert not set(specs["utilized"]) & set(specs["potential"])


def test_no_metrics_unless_asked_for(indexed):
    hook = Hook()
    list(indexed.query_items("SELECT * FROM c", response_hook=hook, **CROSS_PARTITION))
    assert UTILIZATION not in hook.headers


def test_a_count_needs_no_documents(indexed):
    for query in ("SELECT VALUE COUNT(1) FROM c", 'SELECT VALUE COUNT(1) FROM c WHERE c.name = "Ada"'):
        hook = Hook()
        rows = indexed.query_items(
            query, partition_key="a", populate_query_metrics=True, response_hook=hook
        )
        assert list(rows) == [2]
        metrics = dict(pair.split("=") for pair in hook.headers["x-ms-documentdb-query-metrics"].split(";"))
        assert (metrics["retrievedDocumentCount"], metrics["retrievedDocumentSize"]) == ("0", "0")
        assert metrics["indexUtilizationRatio"] == "1.00"


def test_filters_on_excluded_paths_cost_more(database):
    """A scan is charged for what it looks at."""
    policy = {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/slow/?"}]}
    container = database.create_container(fresh("charged"), PartitionKey("/pk"), indexing_policy=policy)
    for number in range(200):
        container.create_item({"id": str(number), "pk": "a", "fast": number, "slow": number, "text": "x" * 1000})
    charges = []
    for name in ("fast", "slow"):
        hook = Hook()
        query = f"SELECT * FROM c WHERE c.{name} = 7"
        assert ids(container.query_items(query, partition_key="a", response_hook=hook)) == ["7"]
        charges.append(float(hook.headers["x-ms-request-charge"]))
    assert charges[0] < 5 and charges[1] > 2 * charges[0]


def test_unique_keys(database):
    cases = CASES["uniqueKeys"]
    container = database.create_container(
        fresh("unique"), PartitionKey("/pk"), unique_key_policy=cases["policy"]
    )
    assert container.read()["uniqueKeyPolicy"] == cases["policy"]
    for write in cases["writes"]:
        item = write["item"]
        act = {
            "create": lambda: container.create_item(item),
            "upsert": lambda: container.upsert_item(item),
            "replace": lambda: container.replace_item(item["id"], item),
            "delete": lambda: container.delete_item(item["id"], item["pk"]),
        }[write["act"]]
        if not write.get("conflict"):
            act()
            continue
        with refused(409, cases["message"], substatus=3301) as caught:
            act()
        # On a replace the SDK has no class of its own for it.
        if write["act"] == "create":
            assert isinstance(caught.value, exceptions.CosmosResourceExistsError)


def test_unique_keys_under_hierarchical_keys(database):
    key = PartitionKey(path=["/tenant", "/user"], kind="MultiHash")
    policy = {"uniqueKeys": [{"paths": ["/email"]}]}
    container = database.create_container(fresh("unique"), key, unique_key_policy=policy)
    container.create_item({"id": "1", "tenant": "t", "user": "u", "email": "x"})
    container.create_item({"id": "1", "tenant": "t", "user": "v", "email": "x"})
    with refused(409, CASES["uniqueKeys"]["message"], substatus=3301):
        container.create_item({"id": "2", "tenant": "t", "user": "u", "email": "x"})


def test_a_changed_policy_comes_into_use(database):
    """An order that was refused is served once the index is built, and rows are right all the time."""
    container = filled(database)
    order = "SELECT * FROM c ORDER BY c.age, c.name"
    with refused(400, "does not have a corresponding composite index"):
        list(container.query_items(order, **CROSS_PARTITION))
    policy = copy.deepcopy(POLICY)
    policy["excludedPaths"] = [{"path": "/age/?"}]
    policy["compositeIndexes"].append([{"path": "/age"}, {"path": "/name"}])
    database.replace_container(container, PartitionKey("/pk"), indexing_policy=policy)
    deadline = time.monotonic() + BUILD_SECONDS_MAX
    while True:
        hook = Hook()
        definition = container.read(populate_quota_info=True, response_hook=hook)
        assert ids(container.query_items("SELECT * FROM c WHERE c.age = 20", **CROSS_PARTITION)) == ["2", "4"]
        progress = int(hook.headers[PROGRESS])
        assert 0 <= progress <= 100
        if progress == 100:
            break
        assert time.monotonic() < deadline, "the index is not built"
        time.sleep(0.05)
    assert definition["indexingPolicy"]["compositeIndexes"][-1][0] == {"path": "/age", "order": "ascending"}
    assert ids(container.query_items(order, **CROSS_PARTITION)) == ["3", "2", "4", "6", "1", "5"]
    assert ids(container.query_items("SELECT * FROM c ORDER BY c.price DESC", **CROSS_PARTITION))[0] == "5"
    with refused(400, "is excluded"):
        list(container.query_items("SELECT * FROM c ORDER BY c.age", **CROSS_PARTITION))


def test_a_container_without_an_index(database):
    policy = {"indexingMode": "none", "automatic": False}
    container = database.create_container(fresh("none"), PartitionKey("/pk"), indexing_policy=policy)
    for document in CASES["documents"]:
        container.create_item(document)
    assert ids(container.query_items("SELECT * FROM c WHERE c.age = 20", **CROSS_PARTITION)) == ["2", "4"]
    assert container.read_item("3", "a")["name"] == "Ada"
    with refused(400, "is excluded"):
        list(container.query_items("SELECT * FROM c ORDER BY c.age", **CROSS_PARTITION))
