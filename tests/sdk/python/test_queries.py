"""Queries: the shared cases in any page size, tokens, refusals, scopes, metrics, charges, and the other resources."""

import asyncio
import json
import pathlib
import re

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.aio import CosmosClient as AsyncClient

from server import PRIMARY_KEY, Server
from support import Hook, content, fresh, ids, refused

CASES = json.loads((pathlib.Path(__file__).parents[1] / "cases/queries.json").read_text(encoding="utf-8"))
DOCUMENTS = CASES["documents"]
BY_ID = {document["id"]: document for document in DOCUMENTS}
CROSS_PARTITION = {"enable_cross_partition_query": True}
RANGES_THROUGHPUT = 30_000
"""Enough for five key ranges."""


def named(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda case: case["name"].replace(" ", "_"))


@pytest.fixture(scope="module")
def people(database):
    """The documents of the shared cases. No test changes them."""
    policy = CASES["indexingPolicy"]
    container = database.create_container(fresh("people"), PartitionKey("/pk"), indexing_policy=policy)
    for document in DOCUMENTS:
        container.create_item(document)
    return container


@pytest.fixture(scope="module")
def ranges(database):
    """The same documents in several key ranges, which the SDK asks by itself for what it has to merge."""
    options = {"indexing_policy": CASES["indexingPolicy"], "offer_throughput": RANGES_THROUGHPUT}
    container = database.create_container(fresh("ranges"), PartitionKey("/pk"), **options)
    for document in DOCUMENTS:
        container.create_item(document)
    return container


@pytest.fixture(scope="module")
def many(database):
    """Sixty items of about the same size, so that charges can be compared."""
    container = database.create_container(fresh("many"), PartitionKey("/pk"))
    for number in range(60):
        container.create_item({"id": f"{number:02}", "pk": number % 4, "number": number, "text": "x" * 500})
    return container


def arguments(case):
    """What a case is for this SDK: text, parameters and scope."""
    scope = {"partition_key": case["partition"]} if "partition" in case else CROSS_PARTITION
    parameters = [{"name": name, "value": value} for name, value in case.get("parameters", {}).items()]
    return {"query": case["query"], "parameters": parameters, **scope}


def texts(rows):
    """Rows in a form that tells 1 from 1.0 and from true, without the properties that the server adds."""
    rows = [content(row) if isinstance(row, dict) else row for row in rows]
    return [json.dumps(row, sort_keys=True) for row in rows]


def check_rows(case, rows):
    expected = case["rows"] if "rows" in case else [BY_ID[name] for name in case["ids"]]
    if case.get("ordered"):
        assert texts(rows) == texts(expected)
    else:
        assert sorted(texts(rows)) == sorted(texts(expected))


def paged(items):
    return [list(page) for page in items.by_page()]


# The shared cases


# The SDK merges rows over all partitions itself, also those of one range, and cannot do so for every query.
MERGED = [case for case in CASES["queries"] if "python-ranges" not in case.get("not_in", [])]


@named(MERGED)
def test_a_query_has_its_answer(people, case):
    check_rows(case, list(people.query_items(**arguments(case))))


@named(MERGED)
def test_the_size_of_pages_changes_nothing(people, case):
    whole = list(people.query_items(**arguments(case)))
    for size in (1, 4):
        pages = paged(people.query_items(**arguments(case), max_item_count=size))
        assert all(len(page) <= size for page in pages)
        assert [row for page in pages for row in page] == whole


@named(MERGED)
def test_the_answer_of_several_ranges(ranges, case):
    for size in (2, 100):
        check_rows(case, list(ranges.query_items(**arguments(case), max_item_count=size)))


@pytest.mark.parametrize("size", [1, 5])
def test_the_feed_ranges_of_several_ranges(ranges, size):
    found, scopes = [], list(ranges.read_feed_ranges())
    for one in scopes:
        found += ranges.query_items("SELECT VALUE c.id FROM c", feed_range=one, max_item_count=size)
    assert len(scopes) == 5 and sorted(found) == sorted(BY_ID)


@pytest.fixture(scope="module")
def elsewhere(endpoint, database, people):
    """The same container in another client."""
    with CosmosClient(endpoint, PRIMARY_KEY) as other:
        yield other.get_database_client(database.id).get_container_client(people.id)


# What the SDK merges has no token that another client could go on from.
UNMERGED = [case for case in CASES["queries"] if not re.search(r"ORDER BY|DISTINCT|TOP|OFFSET", case["query"])]


@named([case for case in UNMERGED if len(case.get("rows", case.get("ids"))) > 3])
def test_a_query_goes_on_from_its_token_in_another_client(people, elsewhere, case):
    pages = people.query_items(**arguments(case), max_item_count=3).by_page()
    rows = list(next(pages))
    token = pages.continuation_token
    assert token and token.isascii() and len(token) < 4096
    rest = elsewhere.query_items(**arguments(case), max_item_count=2).by_page(token)
    check_rows(case, rows + [row for page in rest for row in page])


@named(CASES["refusals"])
def test_a_refusal_names_code_place_and_reason(people, case):
    fragments = [case["message"]]
    if "code" in case:
        fragments.append(f'"code":{case["code"]}')
    if "start" in case:
        fragments.append(f'"location":{{"start":{case["start"]},"end":{case["end"]}}}')
    for scope in (CROSS_PARTITION, {"partition_key": "north"}):
        with refused(400, "(BadRequest)", *fragments):
            list(people.query_items(case["query"], **scope))


def test_the_asynchronous_client_has_the_same_answers(endpoint, database, people):
    async def rows(container, case):
        return [row async for row in container.query_items(**asynchronous(arguments(case)), max_item_count=5)]

    def asynchronous(options):
        # This client needs no flag: without a key it asks everywhere.
        return {name: value for name, value in options.items() if name not in CROSS_PARTITION}

    async def act():
        async with AsyncClient(endpoint, PRIMARY_KEY) as client:
            container = client.get_database_client(database.id).get_container_client(people.id)
            answers = await asyncio.gather(*(rows(container, case) for case in MERGED))
        for case, answer in zip(MERGED, answers):
            check_rows(case, answer)

    asyncio.run(act())


# Scopes


def test_a_query_over_all_partitions_has_to_be_allowed(people):
    for query in ("SELECT * FROM c", "SELECT * FROM c WHERE c.level = 1", "SELECT VALUE COUNT(1) FROM c"):
        with refused(400, "Cross partition query is required but disabled"):
            list(people.query_items(query))


@pytest.mark.parametrize("test", ["c.pk = 'south'", "'south' = c[\"pk\"] AND c.level > 0", "c.pk = @key"])
def test_a_filter_that_names_the_partition_needs_no_permission(people, test):
    found = people.query_items(f"SELECT * FROM c WHERE {test}", parameters=[{"name": "@key", "value": "south"}])
    assert sorted(ids(found)) == ["02", "05", "08", "11"]


@pytest.mark.parametrize("size", [1, 100])
def test_feed_ranges_have_each_item_once(people, size):
    found = []
    for one in people.read_feed_ranges():
        found += people.query_items("SELECT VALUE c.id FROM c", feed_range=one, max_item_count=size)
    assert sorted(found) == sorted(BY_ID)


@pytest.mark.parametrize("key", ["north", "south", "west"])
def test_the_feed_range_of_a_key_has_the_items_of_that_key(people, key):
    scope = {"feed_range": people.feed_range_from_partition_key(key)}
    found = people.query_items("SELECT VALUE c.id FROM c WHERE c.level > @low", [{"name": "@low", "value": 2}], **scope)
    assert sorted(found) == [one["id"] for one in DOCUMENTS if one["pk"] == key and one["level"] > 2]
    count = [one for one in DOCUMENTS if one["pk"] == key]
    assert list(people.query_items("SELECT VALUE COUNT(1) FROM c", **scope)) == [len(count)]


def test_a_query_of_one_key_range(people):
    found = people.query_items("SELECT VALUE c.id FROM c", headers={"x-ms-documentdb-partitionkeyrangeid": "0"})
    assert sorted(found) == sorted(BY_ID)


@pytest.mark.parametrize("size", [1, 2, 100])
def test_the_prefix_of_a_hierarchical_key(make_container, size):
    container = make_container(["/tenant", "/user", "/session"])
    keys = [("t1", "u1", 1), ("t1", "u1", 2), ("t1", "u2", 1), ("t2", "u1", 1), ("t2", None, "s")]
    for number, (tenant, user, session) in enumerate(keys):
        container.create_item({"id": str(number), "tenant": tenant, "user": user, "session": session})
    for length in (1, 2, 3):
        for prefix in {key[:length] for key in keys} | {("t3", "u1", 1)[:length]}:
            expected = [str(number) for number, key in enumerate(keys) if key[:length] == prefix]
            scope = {"partition_key": list(prefix), "max_item_count": size}
            assert sorted(container.query_items("SELECT VALUE c.id FROM c", **scope)) == expected
            ordered = container.query_items("SELECT VALUE c.id FROM c ORDER BY c.id DESC", **scope)
            assert list(ordered) == expected[::-1]
            counted = container.query_items("SELECT VALUE COUNT(1) FROM c", **scope)
            assert list(counted) == [len(expected)]


# Tokens


@pytest.mark.parametrize("token", ["garbage", "{}", "[]", "AAAA", '{"token":"x","range":{"min":"","max":"FF"}}'])
@pytest.mark.parametrize("scope", [CROSS_PARTITION, {"partition_key": "north"}], ids=["everywhere", "partition"])
def test_a_garbage_token_is_refused(people, token, scope):
    with refused(400, "Invalid Continuation Token"):
        next(people.query_items("SELECT * FROM c", **scope).by_page(token))


def test_a_token_belongs_to_its_query(people):
    pages = people.query_items("SELECT * FROM c WHERE c.level > 1", **CROSS_PARTITION, max_item_count=1).by_page()
    next(pages)
    with refused(400):
        other = people.query_items("SELECT * FROM c WHERE c.level > 2", **CROSS_PARTITION)
        next(other.by_page(pages.continuation_token))


@pytest.mark.parametrize("case", ["every item", "order by text", "group by two"])
def test_a_query_goes_on_after_the_server_was_killed(endpoint, tmp_path, case):
    case = next(one for one in CASES["queries"] if one["name"] == case)
    server = Server(tmp_path / "data")
    with CosmosClient(server.endpoint(endpoint.split(":")[0]), PRIMARY_KEY) as client:
        container = client.create_database("d").create_container("c", PartitionKey("/pk"))
        for document in DOCUMENTS:
            container.create_item(document)
        pages = container.query_items(**arguments(case), max_item_count=3).by_page()
        rows = list(next(pages))
        server.kill()
        server.start()
        check_rows(case, rows + [row for page in pages for row in page])
    server.stop()


def test_changes_meanwhile_do_not_disturb_the_pages(make_container):
    """Nothing that was there all the time is left out or comes twice."""
    container = make_container()
    for number in range(6):
        container.create_item({"id": str(number), "pk": "a", "number": number})
    query = "SELECT VALUE c.id FROM c ORDER BY c.number"
    pages = container.query_items(query, partition_key="a", max_item_count=2).by_page()
    assert list(next(pages)) == ["0", "1"]
    container.delete_item("1", "a")
    container.delete_item("4", "a")
    container.create_item({"id": "before", "pk": "a", "number": -1})
    container.create_item({"id": "after", "pk": "a", "number": 9})
    assert [row for page in pages for row in page] == ["2", "3", "5", "after"]


def test_a_page_stops_at_its_bytes(make_container):
    container = make_container()
    for number in range(4):
        container.create_item({"id": str(number), "pk": "a", "text": "x" * 1_500_000})
    for order in ("", " ORDER BY c.id DESC"):
        pages = [ids(page) for page in paged(container.query_items("SELECT * FROM c" + order, partition_key="a"))]
        expected = ["0", "1", "2", "3"]
        assert sum(pages, []) == (expected[::-1] if order else expected) and len(pages) > 1


def test_a_page_has_a_hundred_rows_unless_asked_otherwise(people):
    """Twelve items, ten rows of each."""
    query = "SELECT VALUE n FROM c JOIN n IN (SELECT VALUE [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])"
    assert [len(page) for page in paged(people.query_items(query, **CROSS_PARTITION))] == [100, 20]
    whole = paged(people.query_items(query, **CROSS_PARTITION, max_item_count=-1))
    assert [len(page) for page in whole] == [120]


# Headers


@pytest.mark.parametrize("query", ["SELECT * FROM c", "SELECT * FROM c ORDER BY c.name", "SELECT DISTINCT c.pk FROM c"])
def test_every_page_has_its_headers(people, query):
    hook = Hook()
    pages = paged(people.query_items(query, **CROSS_PARTITION, max_item_count=2, response_hook=hook))
    counts = [int(headers["x-ms-item-count"]) for headers in hook.responses]
    # The page after a full one may be empty.
    assert [count for count in counts if count] == [len(page) for page in pages if page]
    for headers in hook.responses:
        assert float(headers["x-ms-request-charge"]) > 0 and headers["x-ms-activity-id"]
        assert headers["x-ms-session-token"].startswith("0:")
    assert all(headers.get("x-ms-continuation") for headers in hook.responses[:-1])
    assert "x-ms-continuation" not in hook.responses[-1]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM c",
        "SELECT * FROM c WHERE c.number >= 20",
        "SELECT * FROM c ORDER BY c.number DESC",
        "SELECT c.id FROM c ORDER BY c.id OFFSET 5 LIMIT 50",
    ],
)
def test_pages_cost_what_the_whole_costs(many, query):
    def charge(size):
        hook = Hook()
        rows = list(many.query_items(query, **CROSS_PARTITION, max_item_count=size, response_hook=hook))
        charges = [float(one["x-ms-request-charge"]) for one in hook.responses]
        assert all(one > 0 for one in charges)
        return len(rows), len(charges), sum(charges)

    rows, pages, whole = charge(1000)
    again, more_pages, parts = charge(10)
    assert rows == again and pages == 1 and more_pages >= rows / 10
    assert abs(parts - whole) <= 0.1 * whole


def test_more_work_costs_more(many):
    def charge(query):
        hook = Hook()
        list(many.query_items(query, **CROSS_PARTITION, max_item_count=-1, response_hook=hook))
        return float(hook.headers["x-ms-request-charge"])

    assert charge("SELECT TOP 1 * FROM c") < charge("SELECT TOP 30 * FROM c") < charge("SELECT * FROM c")


METRICS = {
    "totalExecutionTimeInMs", "queryCompileTimeInMs", "queryLogicalPlanBuildTimeInMs", "queryPhysicalPlanBuildTimeInMs",
    "queryOptimizationTimeInMs", "VMExecutionTimeInMs", "indexLookupTimeInMs", "documentLoadTimeInMs",
    "systemFunctionExecuteTimeInMs", "userFunctionExecuteTimeInMs", "retrievedDocumentCount", "retrievedDocumentSize",
    "outputDocumentCount", "outputDocumentSize", "writeOutputTimeInMs", "indexUtilizationRatio",
}  # fmt: skip


def test_metrics_come_when_asked_for(people):
    hook = Hook()
    query = "SELECT * FROM c WHERE c.team = 'red'"
    asked = {"populate_query_metrics": True, "max_item_count": 2, "response_hook": hook}
    found = people.query_items(query, **CROSS_PARTITION, **asked)
    assert len(list(found)) == 4
    counts = []
    for headers in hook.responses:
        metrics = dict(pair.split("=") for pair in headers["x-ms-documentdb-query-metrics"].split(";"))
        assert METRICS <= metrics.keys() and all(float(metrics[name]) >= 0 for name in METRICS)
        assert int(metrics["retrievedDocumentCount"]) >= int(metrics["outputDocumentCount"])
        counts.append(int(metrics["outputDocumentCount"]))
    assert sum(counts) == 4
    list(people.query_items(query, **CROSS_PARTITION, response_hook=hook))
    assert "x-ms-documentdb-query-metrics" not in hook.headers


def test_index_metrics_come_when_asked_for(people):
    hook = Hook()
    query = "SELECT * FROM c WHERE c.team = 'red' ORDER BY c.level"
    list(people.query_items(query, **CROSS_PARTITION, populate_index_metrics=True, response_hook=hook))
    # The SDK has decoded the header.
    metrics = hook.headers["x-ms-cosmos-index-utilization"]
    kinds = ("UtilizedSingleIndexes", "PotentialSingleIndexes", "UtilizedCompositeIndexes", "PotentialCompositeIndexes")
    assert all(isinstance(metrics[kind], list) for kind in kinds)
    list(people.query_items(query, **CROSS_PARTITION, response_hook=hook))
    assert "x-ms-cosmos-index-utilization" not in hook.headers


def test_advice_comes_when_asked_for(people):
    hook = Hook()
    query = "SELECT VALUE c.id FROM c WHERE CONTAINS(c.name, 'a') AND LOWER(c.team) = 'red'"
    asked = {"populate_query_advice": True, "max_item_count": 1, "response_hook": hook}
    list(people.query_items(query, **CROSS_PARTITION, **asked))
    # The SDK has turned the rules into sentences; they come with the first page only.
    lines = hook.responses[0]["x-ms-cosmos-query-advice"].splitlines()
    assert [line.split(":")[0] for line in lines] == ["QA1002", "QA1006"]
    assert "STARTSWITH" in lines[0]
    assert all("x-ms-cosmos-query-advice" not in headers for headers in hook.responses[1:])
    hook = Hook()
    list(people.query_items(query, **CROSS_PARTITION, response_hook=hook))
    assert "x-ms-cosmos-query-advice" not in hook.headers


# Many items at once


def test_reading_many_items_by_id_and_key(people):
    wanted = [(one["id"], one["pk"]) for one in DOCUMENTS[::2]]
    found = people.read_items(wanted + [("01", "south"), ("99", "north")])
    assert sorted((content(one) for one in found), key=lambda one: one["id"]) == DOCUMENTS[::2]
    assert people.read_items([]) == []


def test_reading_more_items_than_one_query_names(make_container):
    container = make_container("/id")
    names = [f"item-{number}" for number in range(150)]

    async def fill(endpoint, database):
        async with AsyncClient(endpoint, PRIMARY_KEY) as client:
            target = client.get_database_client(database).get_container_client(container.id)
            await asyncio.gather(*(target.create_item({"id": name}) for name in names))

    asyncio.run(fill(container.client_connection.url_connection, container.container_link.split("/")[1]))
    assert sorted(ids(container.read_items([(name, name) for name in names]))) == sorted(names)


# Other resources


def test_queries_over_databases(client, database):
    by_id = [{"name": "@id", "value": database.id}]
    found = list(client.query_databases("SELECT * FROM root r WHERE r.id = @id", by_id))
    assert [content(one) for one in found] == [content(database.read())]
    assert list(client.query_databases("SELECT VALUE d.id FROM d WHERE d.id = @id", by_id)) == [database.id]
    assert list(client.query_databases("SELECT * FROM d WHERE d.id = 'missing'")) == []
    with refused(400, "Syntax error"):
        list(client.query_databases("SELECT * FROM d WHERE"))


def test_queries_over_containers(client):
    database = client.create_database(fresh("database"))
    names = [f"container-{number}" for number in range(5)]
    for name in names:
        database.create_container(name, PartitionKey("/pk"))
    ordered = database.query_containers("SELECT * FROM c ORDER BY c.id DESC", max_item_count=2)
    assert ids(ordered) == names[::-1]
    pages = paged(database.query_containers("SELECT VALUE c.id FROM c", max_item_count=2))
    assert [len(page) for page in pages] == [2, 2, 1] and sorted(sum(pages, [])) == names
    paths = database.query_containers("SELECT VALUE c.partitionKey.paths[0] FROM c WHERE c.id = 'container-3'")
    assert list(paths) == ["/pk"]
    client.delete_database(database)


def test_queries_over_users_and_permissions(database, container):
    user = database.create_user({"id": fresh("user")})
    for name, mode in {"read": "Read", "write": "All"}.items():
        resource = f"{container.container_link}/docs/{name}"
        user.create_permission({"id": name, "permissionMode": mode, "resource": resource})
    by_id = [{"name": "@id", "value": user.id}]
    assert ids(database.query_users("SELECT * FROM u WHERE u.id = @id", by_id)) == [user.id]
    assert ids(user.query_permissions("SELECT * FROM p WHERE p.permissionMode = 'All'")) == ["write"]
    assert sorted(ids(user.query_permissions("SELECT * FROM p", max_item_count=1))) == ["read", "write"]


def test_queries_over_scripts(container):
    scripts = container.scripts
    names = sorted(fresh("script") for _ in range(3))
    kinds = [
        (scripts.create_stored_procedure, scripts.query_stored_procedures, {}),
        (scripts.create_trigger, scripts.query_triggers, {"triggerType": "Pre", "triggerOperation": "All"}),
        (scripts.create_user_defined_function, scripts.query_user_defined_functions, {}),
    ]
    for create, query, more in kinds:
        for name in names:
            create({"id": name, "body": "function () {}", **more})
        last = [{"name": "@id", "value": names[-1]}]
        assert ids(query("SELECT * FROM s WHERE s.id = @id", last)) == [names[-1]]
        assert ids(query("SELECT * FROM s ORDER BY s.id DESC", max_item_count=1)) == names[::-1]


def test_queries_over_offers(connection, database):
    container = database.create_container(fresh("container"), PartitionKey("/pk"), offer_throughput=700)
    link = [{"name": "@link", "value": container.read()["_self"]}]
    query = {"query": "SELECT * FROM root r WHERE r.resource = @link", "parameters": link}
    [offer] = connection.QueryOffers(query)
    assert offer["content"]["offerThroughput"] == 700
    query["query"] = "SELECT VALUE r.content.offerThroughput FROM r WHERE r.resource = @link"
    assert list(connection.QueryOffers(query)) == [700]


def test_queries_over_conflicts(container):
    assert list(container.query_conflicts("SELECT * FROM c", **CROSS_PARTITION)) == []


@pytest.mark.parametrize("query", [
    "SELECT * FROM c WHERE c.id > '1'",
    "SELECT * FROM c ORDER BY c.id DESC",
    "SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk",
    "SELECT VALUE AVG(c.n) FROM c",
])
def test_how_a_query_runs_comes_as_rows(people, ranges, query):
    explain = {"headers": {"x-astrarium-explain": "1"}}
    for container in (people, ranges):
        for scope in ({"partition_key": DOCUMENTS[0]["pk"]}, CROSS_PARTITION):
            rows = list(container.query_items(query, **scope, **explain))
            assert rows and all("first page:" in row["plan"] for row in rows)
