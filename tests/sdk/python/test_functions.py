"""User-defined functions in queries: every clause, any page size, one partition or all, one range or five."""

import pytest

from support import fresh, refused

FUNCTIONS = {
    # A rate for each bracket of an income.
    "tax": """
    function tax(income) {
      if (income === undefined) throw new Error("there is no income");
      if (income < 1000) return income * 0.1;
      if (income < 10000) return income * 0.2;
      return income * 0.4;
    }""",
    "twice": "function (x) { return x * 2; }",
    "is_even": "(n) => n % 2 === 0",
    "kind": "function (x) { return x === null ? 'null' : Array.isArray(x) ? 'array' : typeof x; }",
    "nothing": "function () {}",
    "spoil": "function (item) { item.income = -1; delete item.id; return true; }",
    "pair": "function (a, b) { return { a, b, count: arguments.length }; }",
    "letters": "function (text) { return text.split(''); }",
    "throws": "function () { throw new Error('no figures today'); }",
    "context": "function () { return typeof getContext; }",
}
INCOMES = [500, 1_000, 2_000, 5_000, 10_000, 12_000, 20_000, 50_000]


def tax(income: int) -> float:
    return income * (0.1 if income < 1_000 else 0.2 if income < 10_000 else 0.4)


@pytest.fixture(scope="module", params=[400, 30_000], ids=["one range", "five ranges"])
def people(request, database):
    """People of several partitions, in a container with all the functions."""
    key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
    made = database.create_container(fresh("people"), key, offer_throughput=request.param)
    for name, body in FUNCTIONS.items():
        made.scripts.create_user_defined_function({"id": name, "body": body})
    for number, income in enumerate(INCOMES):
        made.create_item({"id": f"{number}", "pk": f"key {number % 5}", "n": number, "income": income})
    return made


def query(container, text, **options):
    return list(container.query_items(text, enable_cross_partition_query=True, **options))


@pytest.mark.parametrize("size", [1, 3, None])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT VALUE c.n FROM c WHERE udf.tax(c.income) > 3000", [4, 5, 6, 7]),
        ("SELECT VALUE c.n FROM c WHERE udf.is_even(c.n) AND c.income >= 2000", [2, 4, 6]),
        ("SELECT VALUE udf.twice(c.n) FROM c WHERE c.n < 3", [0, 2, 4]),
        ("SELECT VALUE udf.twice(udf.twice(c.n)) FROM c WHERE NOT udf.is_even(c.n)", [4, 12, 20, 28]),
        ("SELECT VALUE c.n FROM c WHERE udf.twice(c.n) IN (2, 4) OR udf.twice(c.n) BETWEEN 13 AND 20", [1, 2, 7]),
    ],
)
def test_functions_in_filters_and_projections(people, text, expected, size):
    assert sorted(query(people, text, max_item_count=size)) == expected


@pytest.mark.parametrize("size", [1, 3, None])
def test_functions_with_an_order(people, size):
    text = "SELECT c.n, udf.tax(c.income) AS tax FROM c WHERE udf.tax(c.income) < 5000 ORDER BY c.income DESC"
    expected = [{"n": n, "tax": tax(INCOMES[n])} for n in (5, 4, 3, 2, 1, 0)]
    assert query(people, text, max_item_count=size) == expected
    text = "SELECT TOP 2 VALUE udf.twice(c.n) FROM c WHERE NOT udf.is_even(c.n) ORDER BY c.n"
    assert query(people, text, max_item_count=size) == [2, 6]
    text = "SELECT VALUE udf.twice(c.n) FROM c ORDER BY c.n OFFSET 2 LIMIT 3"
    assert query(people, text, max_item_count=size) == [4, 6, 8]


@pytest.mark.parametrize("size", [1, None])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT VALUE SUM(udf.tax(c.income)) FROM c", [sum(map(tax, INCOMES))]),
        ("SELECT VALUE MAX(udf.twice(c.n)) FROM c", [14]),
        ("SELECT VALUE COUNT(1) FROM c WHERE udf.is_even(c.n)", [4]),
        ("SELECT VALUE AVG(udf.twice(c.n)) FROM c", [7]),
    ],
)
def test_functions_and_aggregates(people, text, expected, size):
    assert query(people, text, max_item_count=size) == pytest.approx(expected)


def test_functions_in_one_partition(people):
    text = "SELECT VALUE udf.pair(c.n, @extra) FROM c WHERE udf.is_even(c.n)"
    found = people.query_items(text, parameters=[{"name": "@extra", "value": [1]}], partition_key="key 1")
    assert list(found) == [{"a": 6, "b": [1], "count": 2}]
    text = "SELECT udf.is_even(c.n) AS even, COUNT(1) AS count FROM c GROUP BY udf.is_even(c.n)"
    groups = sorted(people.query_items(text, partition_key="key 1"), key=str)
    assert groups == [{"even": False, "count": 1}, {"even": True, "count": 1}]
    assert sorted(people.query_items("SELECT DISTINCT VALUE udf.is_even(c.n) FROM c", partition_key="key 1")) == [
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [("text", "string"), (1.5, "number"), (True, "boolean"), (None, "null"), ([1], "array"), ({"a": 1}, "object")],
    ids=repr,
)
def test_arguments_of_every_type(people, value, expected):
    parameters = [{"name": "@value", "value": value}]
    text = "SELECT TOP 1 VALUE udf.kind(@value) FROM c"
    found = people.query_items(text, parameters=parameters, partition_key="key 0")
    assert list(found) == [expected]


def test_a_function_of_what_is_missing_is_not_called(people):
    # It would throw.
    assert query(people, "SELECT VALUE udf.tax(c.missing) FROM c") == []
    assert query(people, "SELECT c.n, udf.tax(c.missing) AS tax FROM c WHERE c.n = 1") == [{"n": 1}]


def test_what_a_function_gives(people):
    text = "SELECT udf.nothing(c) AS nothing, udf.pair(c.n) AS pair, udf.letters('ab') AS letters FROM c"
    found = list(people.query_items(text + " WHERE c.n = 3", partition_key="key 3"))
    # The second argument is missing, and so is what comes of it.
    assert found == [{"pair": {"a": 3, "count": 1}, "letters": ["a", "b"]}]
    joined = "SELECT VALUE letter FROM c JOIN letter IN (SELECT VALUE udf.letters('xyz')) WHERE c.n = 3"
    assert list(people.query_items(joined, partition_key="key 3")) == ["x", "y", "z"]


def test_a_function_changes_nothing(people):
    text = "SELECT c.id, c.income FROM c WHERE udf.spoil(c) AND c.n = 2"
    assert query(people, text) == [{"id": "2", "income": 2_000}]
    assert people.read_item("2", "key 2")["income"] == 2_000


def test_a_function_that_fails_fails_its_query_alone(people):
    with refused(400, "no figures today"):
        query(people, "SELECT VALUE udf.throws() FROM c")
    assert query(people, "SELECT VALUE COUNT(1) FROM c") == [8]
    assert query(people, "SELECT VALUE c.n FROM c WHERE c.n = 1 AND udf.context() = 'undefined'") == [1]


def test_a_function_that_does_not_exist_is_refused(people):
    for text in ("SELECT VALUE udf.none(c.n) FROM c", "SELECT VALUE udf.TAX(c.income) FROM c"):
        with refused(400):
            query(people, text)


def test_a_replaced_function_is_the_new_one(make_container):
    container = make_container()
    container.create_item({"id": "1", "pk": "a"})
    name = "f"
    container.scripts.create_user_defined_function({"id": name, "body": "function () { return 1; }"})
    text = "SELECT VALUE udf.f() FROM c"
    assert list(container.query_items(text, partition_key="a")) == [1]
    container.scripts.replace_user_defined_function(name, {"id": name, "body": "function () { return 2; }"})
    assert list(container.query_items(text, partition_key="a")) == [2]
    container.scripts.delete_user_defined_function(name)
    with refused(400):
        list(container.query_items(text, partition_key="a"))


def test_functions_in_scripts(make_container):
    container = make_container()
    container.scripts.create_user_defined_function({"id": "twice", "body": "function (x) { return x * 2; }"})
    body = """
    function () {
      const query = "SELECT VALUE udf.twice(c.n) FROM c WHERE udf.twice(c.n) > 2 ORDER BY c.n";
      __.queryDocuments(__.getSelfLink(), query, (error, found) => {
        if (error) throw error;
        __.response.setBody(found);
      });
    }"""
    container.scripts.create_stored_procedure({"id": "p", "body": body})
    for number in range(4):
        container.create_item({"id": str(number), "pk": "a", "n": number})
    assert container.scripts.execute_stored_procedure("p", "a") == [4, 6]
