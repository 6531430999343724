"""Stored procedures at work: parameters, results, errors, transactions of one partition, going on where one ended."""

import asyncio
import json
import urllib.parse

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.aio import CosmosClient as AsyncClient
from azure.cosmos.partition_key import NonePartitionKeyValue

from server import PRIMARY_KEY
from support import Procedures, at_once, content, fresh, ids, refused, script_text

ECHO = "function (...given) { getContext().getResponse().setBody(given); }"
# Creates an item for each id, in the order given; an item that is there already is an error that nobody catches.
CREATE = """
function create(names, key) {
  const collection = getContext().getCollection();
  for (const id of names) collection.createDocument(collection.getSelfLink(), { id, pk: key, n: 0 });
}"""
INCREMENT = """
function increment(id) {
  const collection = getContext().getCollection();
  collection.readDocument(collection.getAltLink() + "/docs/" + id, (error, item) => {
    if (error) throw error;
    item.n += 1;
    collection.replaceDocument(item._self, item, (failure) => { if (failure) throw failure; });
    getContext().getResponse().setBody(item.n);
  });
}"""
LIST = """
function list(query, pageSize) {
  const found = [], sizes = [];
  const page = (continuation) => __.queryDocuments(__.getSelfLink(), query, { pageSize, continuation },
    (error, items, about) => {
      if (error) throw error;
      found.push(...items);
      sizes.push(items.length);
      if (about.continuation) page(about.continuation);
      else __.response.setBody({ found, sizes });
    });
  page();
}"""


@pytest.fixture
def procedures(container):
    return Procedures(container)


def stored(container, key) -> list[str]:
    return sorted(ids(container.query_items("SELECT c.id FROM c", partition_key=key)))


@pytest.mark.parametrize(
    "parameters",
    [
        [],
        ["text", "", 'quotes " and \\', "line\u2028separator \u0000", "käse 漢字 😀"],
        [0, -1, 1.5, 1e300, 2**53 - 1, -(2**53)],
        [True, False, None],
        [[], {}, [[1], [2, [3]]], {"a": {"b": [None, {"c": 1}]}}],
        ["x" * 100_000],
    ],
    ids=["none", "texts", "numbers", "others", "nested", "long"],
)
def test_parameters_of_every_type(procedures, parameters):
    assert procedures.run(ECHO, "a", *parameters) == parameters


def test_parameters_that_are_missing_or_many(container, procedures):
    count = "function (a, b) { getContext().getResponse().setBody([arguments.length, typeof a, typeof b]); }"
    assert procedures.run(count, "a") == [0, "undefined", "undefined"]
    assert procedures.run(count, "a", None) == [1, "object", "undefined"]
    assert procedures.run(count, "a", 1, "2", 3) == [3, "number", "string"]
    # The SDK makes a list of what is none.
    assert container.scripts.execute_stored_procedure(procedures.name(ECHO), "a", {"a": 1}) == [{"a": 1}]
    assert container.scripts.execute_stored_procedure(procedures.name(count), "a") == [0, "undefined", "undefined"]


@pytest.mark.parametrize("value", ["text", 0, -2.5, True, False, [1, [2]], {"a": {"b": None}}, "käse 😀"], ids=repr)
def test_results_of_every_type(procedures, value):
    body = "function (value) { getContext().getResponse().setBody(value); }"
    assert procedures.run(body, "a", value) == value


def test_results_in_pieces(procedures):
    assert not procedures.run("function () { return 'nobody looks at this'; }", "a")
    pieces = "function () { ['a', 'b', 'c'].forEach((one) => getContext().getResponse().appendBody(one)); }"
    assert procedures.run(pieces, "a") == "abc"
    again = "function () { const r = getContext().getResponse(); r.setBody(1); r.setBody(r.getBody() + 1); }"
    assert procedures.run(again, "a") == 2


def test_the_response_says_what_every_response_says(container, procedures):
    procedures.run(CREATE, "about", [fresh("item")], "about")
    headers = container.client_connection.last_response_headers
    assert float(headers["x-ms-request-charge"]) > 1
    assert headers["x-ms-session-token"] and headers["x-ms-activity-id"]


def test_the_log(container, procedures):
    body = """function () {
        console.log("the %s is %s", "answer", 42);
        console.log("käse");
        getContext().getResponse().setBody(1);
    }"""
    for enabled in (None, False, True):
        assert procedures.run(body, "a", enable_script_logging=enabled) == 1
        log = container.client_connection.last_response_headers.get("x-ms-documentdb-script-log-results")
        if enabled:
            assert "the answer is 42" in urllib.parse.unquote(log) and "käse" in urllib.parse.unquote(log)
            assert log.isascii() and " " not in log
        else:
            assert log is None


@pytest.mark.parametrize(
    ("body", "substatus", "fragment"),
    [
        ("function () { throw new Error('out of luck'); }", 0, "Error: out of luck"),
        ("function () { throw 'a text'; }", 0, "a text"),
        ("function () { throw new Error(404, 'no such shelf'); }", 404, "no such shelf"),
        ("function () { throw new Error(ErrorCodes.Conflict, 'twice'); }", 409, "twice"),
        ("function () { nothing.at.all; }", 0, "ReferenceError"),
        ("function () { null.property; }", 0, "TypeError"),
        ("function () { getContext().abort(new Error('enough')); }", 0, "enough"),
        ("function () { __.readDocument(__.getAltLink() + '/docs/none'); }", 404, ""),
    ],
)
def test_errors(procedures, body, substatus, fragment):
    with refused(400, "Encountered exception while executing Javascript. Exception = ", fragment, substatus=substatus):
        procedures.run(body, "errors")


def test_an_error_says_where(procedures):
    body = "function outer() {\n  inner();\n\n  function inner() {\n    throw new Error('here');\n  }\n}"
    with refused(400, "Stack trace: ", "at inner (", ".js:5:", "at outer (", ".js:2:"):
        procedures.run(body, "a")


def test_what_does_not_exist(container, procedures, make_container):
    with refused(404):
        container.scripts.execute_stored_procedure("none", "a")
    name = procedures.name(ECHO)
    container.scripts.delete_stored_procedure(name)
    with refused(404):
        container.scripts.execute_stored_procedure(name, "a")
    with refused(404):
        make_container().scripts.execute_stored_procedure(name, "a")


def test_a_replaced_procedure_is_the_new_one(container):
    name = fresh("procedure")
    for number in range(3):
        body = f"function () {{ getContext().getResponse().setBody({number}); }}"
        if number == 0:
            container.scripts.create_stored_procedure({"id": name, "body": body})
        else:
            container.scripts.replace_stored_procedure(name, {"id": name, "body": body})
        assert container.scripts.execute_stored_procedure(name, "a") == number


def test_all_or_nothing(container, procedures):
    key = fresh("key")
    procedures.run(CREATE, key, ["a", "b"], key)
    assert stored(container, key) == ["a", "b"]
    with refused(400, "Exception = ", substatus=409):
        procedures.run(CREATE, key, ["c", "d", "a", "e"], key)
    assert stored(container, key) == ["a", "b"]


@pytest.mark.parametrize(
    "ending",
    [
        "throw new Error('no');",
        "getContext().abort('no');",
        "Promise.resolve().then(() => getContext().abort(new Error('no')));",
        "__.deleteDocument(__.getAltLink() + '/docs/none');",
    ],
)
def test_an_end_with_an_error_undoes_everything(container, procedures, ending):
    key = fresh("key")
    for name in ("changed", "removed"):
        container.create_item({"id": name, "pk": key, "n": 1})
    body = f"""
    function (key) {{
      const link = (id) => __.getAltLink() + "/docs/" + id;
      __.createDocument(__.getSelfLink(), {{ id: "new", pk: key }});
      __.deleteDocument(link("removed"));
      __.upsertDocument(__.getSelfLink(), {{ id: "changed", pk: key, n: 2 }}, (error) => {{
        if (error) throw error;
        __.readDocument(link("changed"), (failure, item) => {{
          if (failure || item.n !== 2) throw new Error("own writes are to be seen");
          {ending}
        }});
      }});
    }}"""
    with refused(400, substatus=404 if "none" in ending else 0):
        procedures.run(body, key, key)
    assert stored(container, key) == ["changed", "removed"]
    assert container.read_item("changed", key)["n"] == 1


def test_an_error_that_is_caught_undoes_nothing(container, procedures):
    key = fresh("key")
    container.create_item({"id": "there", "pk": key})
    body = """
    function (key) {
      const numbers = [];
      const note = (error) => { numbers.push(error ? error.number : 0); __.response.setBody(numbers); };
      const create = (id) => __.createDocument(__.getSelfLink(), { id, pk: key }, note);
      create("there");
      create("new");
      __.readDocument(__.getAltLink() + "/docs/none", note);
      __.replaceDocument(__.getAltLink() + "/docs/there", { id: "there", pk: key }, { etag: '"old"' }, note);
    }"""
    assert procedures.run(body, key, key) == [409, 0, 404, 412]
    assert stored(container, key) == ["new", "there"]


def test_every_operation_on_an_item(container, procedures):
    key = fresh("key")
    body = """
    function (key) {
      const steps = [];
      const then = (next) => (error, item) => {
        if (error) throw error;
        steps.push(item && item.n);
        if (next) next(item); else __.response.setBody(steps);
      };
      const self = __.getSelfLink();
      __.createDocument(self, { pk: key, n: 1 }, then((made) => {
        made.n = 2;
        __.replaceDocument(made._self, made, { etag: made._etag }, then((replaced) => {
          replaced.n = 3;
          __.upsertDocument(self, replaced, then((upserted) => {
            __.readDocument(upserted._self, then((read) => {
              __.deleteDocument(read._self, (error) => {
                if (error) throw error;
                __.upsertDocument(self, { id: "last", pk: key, n: 4 }, then());
              });
            }));
          }));
        }));
      }));
    }"""
    assert procedures.run(body, key, key) == [1, 2, 3, 3, 4]
    assert [content(item) for item in container.query_items("SELECT * FROM c", partition_key=key)] == [
        {"id": "last", "pk": key, "n": 4}
    ]


def test_promises(container, procedures):
    key = fresh("key")
    body = """
    async function (key, count) {
      const create = (body) => new Promise((resolve, reject) => {
        const done = (error, made) => (error ? reject(error) : resolve(made));
        if (!__.createDocument(__.getSelfLink(), body, done)) reject(new Error("not accepted"));
      });
      const made = [];
      for (let number = 0; number < count; number++) made.push((await create({ id: `${number}`, pk: key })).id);
      try { await create({ id: "0", pk: key }); } catch (error) { made.push(error.number); }
      __.response.setBody(made);
    }"""
    assert procedures.run(body, key, key, 3) == ["0", "1", "2", 409]
    assert stored(container, key) == ["0", "1", "2"]


def test_only_the_partition_of_the_request(container, procedures):
    mine, other = fresh("key"), fresh("key")
    for key in (mine, other):
        for name in ("1", "2"):
            container.create_item({"id": name + key[-1], "pk": key, "owner": key})
    container.create_item({"id": "only there", "pk": other})
    found = procedures.run(LIST, mine, "SELECT VALUE c.owner FROM c", 10)["found"]
    assert found == [mine, mine]
    everything = "function () { __.readDocuments(__.getSelfLink(), (e, all) => __.response.setBody(all.length)); }"
    assert procedures.run(everything, mine) == 2
    with refused(400, substatus=404):
        procedures.run("function () { __.readDocument(__.getAltLink() + '/docs/only there'); }", mine)
    with pytest.raises(Exception) as caught:
        procedures.run(CREATE, mine, ["new"], other)
    assert caught.value.status_code == 400
    assert stored(container, other) == sorted([f"1{other[-1]}", f"2{other[-1]}", "only there"])
    with refused(400):
        container.scripts.execute_stored_procedure(procedures.name(ECHO))


@pytest.mark.parametrize("key", [1, 1.5, True, "", NonePartitionKeyValue], ids=str)
def test_partitions_of_every_type(make_container, key):
    container = make_container()
    procedures = Procedures(container)
    body = """
    function (item) { __.createDocument(__.getSelfLink(), item, (e, made) => { if (e) throw e; }); }"""
    item = {"id": "1"} if key is NonePartitionKeyValue else {"id": "1", "pk": key}
    procedures.run(body, key, item)
    assert content(container.read_item("1", key)) == item
    assert procedures.run(LIST, key, "SELECT VALUE c.id FROM c", 10)["found"] == ["1"]
    assert procedures.run(LIST, "another", "SELECT VALUE c.id FROM c", 10)["found"] == []


def test_hierarchical_keys(make_container):
    container = make_container({"paths": ["/a", "/b"], "kind": "MultiHash", "version": 2})
    procedures = Procedures(container)
    create = "function (item) { __.createDocument(__.getSelfLink(), item); }"
    procedures.run(create, ["x", 1], {"id": "1", "a": "x", "b": 1})
    assert container.read_item("1", ["x", 1])["b"] == 1
    with pytest.raises(Exception) as caught:
        procedures.run(create, ["x", 1], {"id": "2", "a": "x", "b": 2})
    assert caught.value.status_code == 400


@pytest.mark.parametrize("size", [1, 3, 100])
def test_queries_in_pages(container, procedures, size):
    key = fresh("key")
    procedures.run(CREATE, key, [f"{number:02}" for number in range(10)], key)
    query = {
        "query": "SELECT VALUE c.id FROM c WHERE c.id >= @from ORDER BY c.id DESC",
        "parameters": [{"name": "@from", "value": "03"}],
    }
    answer = procedures.run(LIST, key, query, size)
    assert answer["found"] == ["09", "08", "07", "06", "05", "04", "03"]
    assert max(answer["sizes"]) <= size
    assert procedures.run(LIST, key, "SELECT VALUE COUNT(1) FROM c", size)["found"] == [10]


def test_queries_written_in_javascript(container, procedures):
    key = fresh("key")
    people = [("Ann", 31, ["red", "blue"]), ("Bob", 25, []), ("Cyd", 47, ["blue"])]
    for name, age, colours in people:
        container.create_item({"id": name, "pk": key, "age": age, "colours": colours})
    cases = [
        ("__.filter((p) => p.age > 30, (e, found) => give(found.map((p) => p.id)))", ["Ann", "Cyd"]),
        ("__.map((p) => p.age, (e, found) => give(found))", [31, 25, 47]),
        ("__.pluck('id', (e, found) => give(found))", ["Ann", "Bob", "Cyd"]),
        ("__.chain().pluck('colours').flatten().value((e, found) => give(found))", ["red", "blue", "blue"]),
        ("__.chain().sortBy((p) => p.age).map((p) => p.id).value((e, found) => give(found))", ["Bob", "Ann", "Cyd"]),
        ("__.chain().filter((p) => p.age < 40).sortByDescending((p) => p.age).pluck('id').value()", ["Ann", "Bob"]),
        (
            "__.unwind((p) => p.colours, (p, colour) => ({ [p.id]: colour }), (e, found) => give(found))",
            [{"Ann": "red"}, {"Ann": "blue"}, {"Cyd": "blue"}],
        ),
    ]
    for expression, expected in cases:
        answer = procedures.run(f"function () {{ const give = (v) => __.response.setBody(v); {expression}; }}", key)
        # Where no callback takes the result, its text is appended to the response.
        assert (json.loads(answer) if isinstance(answer, str) else answer) == expected, expression


@pytest.mark.parametrize("most", [None, 1, 7])
def test_bulk_import_goes_on_until_all_is_there(container, procedures, most):
    key = fresh("key")
    items = [{"id": f"{number:03}", "pk": key} for number in range(20 if most else 150)]
    rest, calls = items, 0
    while rest:
        made = procedures.run(script_text("bulk_import"), key, rest, *([most] if most else []))
        assert 0 < made <= (most or len(rest))
        rest, calls = rest[made:], calls + 1
    assert stored(container, key) == [item["id"] for item in items]
    assert calls >= (len(items) / most if most else 1)


def test_a_bulk_import_that_fails_leaves_nothing(container, procedures):
    key = fresh("key")
    items = [{"id": str(number % 9), "pk": key} for number in range(10)]
    with refused(400, substatus=409):
        procedures.run(script_text("bulk_import"), key, items)
    assert stored(container, key) == []


@pytest.mark.parametrize(("page", "most"), [(100, None), (3, None), (4, 6)])
def test_bulk_delete_goes_on_until_all_is_gone(container, procedures, page, most):
    key = fresh("key")
    procedures.run(CREATE, key, [f"{number:02}" for number in range(20)], key)
    deleted, more = 0, True
    while more:
        query = "SELECT * FROM c WHERE c.id >= '05'"
        answer = procedures.run(script_text("bulk_delete"), key, query, page, *([most] if most else []))
        deleted, more = deleted + answer["deleted"], answer["more"]
        assert not most or answer["deleted"] <= most
    assert deleted == 15
    assert stored(container, key) == [f"{number:02}" for number in range(5)]


def test_many_clients_on_one_counter(endpoint, database, container, procedures):
    key = fresh("key")
    container.create_item({"id": "counter", "pk": key, "n": 0})
    name = procedures.name(INCREMENT)

    def count():
        with CosmosClient(endpoint, PRIMARY_KEY) as client:
            own = client.get_database_client(database.id).get_container_client(container.id)
            return [own.scripts.execute_stored_procedure(name, key, ["counter"]) for _ in range(10)]

    seen = sum(at_once(*[count] * 8), [])
    assert sorted(seen) == list(range(1, 81))
    assert container.read_item("counter", key)["n"] == 80


def test_the_asynchronous_client(endpoint, database):
    async def act():
        async with AsyncClient(endpoint, PRIMARY_KEY) as client:
            container = await client.get_database_client(database.id).create_container(
                fresh("container"), PartitionKey("/pk")
            )
            scripts = container.scripts

            def execute(name, *parameters):
                return scripts.execute_stored_procedure(name, partition_key="a", parameters=list(parameters))

            for name, body in {"increment": INCREMENT, "echo": ECHO, "create": CREATE}.items():
                await scripts.create_stored_procedure({"id": name, "body": body})
            await execute("create", ["1", "2"], "a")
            run = [execute("increment", "1") for _ in range(20)]
            assert sorted(await asyncio.gather(*run)) == list(range(1, 21))
            assert await execute("echo", 1, None, {"x": []}) == [1, None, {"x": []}]
            with pytest.raises(Exception) as caught:
                await execute("increment", "none")
            assert (caught.value.status_code, caught.value.sub_status) == (400, 404)
            trigger = "function () { const b = __.request.getBody(); b.seen = true; __.request.setBody(b); }"
            await scripts.create_trigger(
                {"id": "mark", "body": trigger, "triggerType": "Pre", "triggerOperation": "All"}
            )
            made = await container.create_item({"id": "3", "pk": "a"}, pre_trigger_include="mark")
            assert made["seen"] is True
            await scripts.create_user_defined_function({"id": "twice", "body": "function (n) { return 2 * n; }"})
            query = container.query_items("SELECT VALUE udf.twice(c.n) FROM c ORDER BY c.id", partition_key="a")
            assert [value async for value in query] == [40, 0]
            assert [one["id"] async for one in scripts.list_stored_procedures()] == ["increment", "echo", "create"]

    asyncio.run(act())
