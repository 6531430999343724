"""The examples that articles about modelling give, end to end: books and authors, a blog, portfolios, publishers.

What has to change together lies in one partition, and a script or a batch changes it; what is read together is embedded
where it is bounded and referred to where it is not.
"""

import random

import pytest
from azure.cosmos import CosmosClient, exceptions

from server import PRIMARY_KEY
from support import Procedures, at_once, content, fresh, ids, refused, script_text

CLIENT_COUNT = 50


def query(container, text, **options):
    parameters = [{"name": f"@{name}", "value": value} for name, value in options.pop("values", {}).items()]
    scope = {} if "partition_key" in options else {"enable_cross_partition_query": True}
    return list(container.query_items(text, parameters=parameters, **scope, **options))


def until_done(act):
    """Repeats what the server gave up because too many others wanted the same."""
    while True:
        try:
            return act()
        except exceptions.CosmosHttpResponseError as error:
            if error.status_code != 449:
                raise


class Library:
    """Authors and books in one partition, with the scripts that keep the authors' counts."""

    def __init__(self, container):
        self.container, self.key = container, "library"
        scripts = container.scripts
        scripts.create_stored_procedure({"id": "insertBook", "body": script_text("insert_book")})
        for name, body, when in (
            ("requireAuthor", "require_author", "Pre"),
            ("countBook", "count_book", "Post"),
        ):
            definition = {"id": name, "body": script_text(body), "triggerType": when, "triggerOperation": "Create"}
            scripts.create_trigger(definition)

    def add_author(self, name):
        item = {"id": name.lower(), "library": self.key, "type": "author", "name": name, "countOfBooks": 0}
        return self.container.create_item(item)

    def book(self, name, *authors):
        references = [{"id": author, "thumbnail": f"images/{author}.png"} for author in authors]
        return {"id": name, "library": self.key, "type": "book", "name": name, "authors": references}

    def insert(self, book, container=None):
        scripts = (container or self.container).scripts
        return scripts.execute_stored_procedure("insertBook", self.key, [book])

    def count(self, author):
        return self.container.read_item(author, self.key)["countOfBooks"]

    def books(self, author):
        text = "SELECT c.id FROM c JOIN a IN c.authors WHERE c.type = 'book' AND a.id = @author"
        return sorted(ids(query(self.container, text, values={"author": author}, partition_key=self.key)))


@pytest.fixture
def library(make_container):
    made = Library(make_container("/library"))
    for name in ("Ada", "Bea"):
        made.add_author(name)
    return made


def test_a_procedure_inserts_a_book_and_counts_it(library):
    created = library.insert(library.book("one", "ada"))
    assert created["name"] == "one" and created["_etag"]
    library.insert(library.book("two", "ada", "bea"))
    assert (library.count("ada"), library.count("bea")) == (2, 1)
    assert library.books("ada") == ["one", "two"]


@pytest.mark.parametrize(
    ("name", "authors", "substatus"),
    [
        ("there", ["ada"], 409),  # the book exists
        ("new", ["nobody"], 404),  # its author does not
        ("new", ["ada", "nobody"], 404),  # nor does the second, when the first has been counted already
        ("new", ["ada", "ada"], 412),  # counted twice from the same version
    ],
)
def test_a_procedure_that_throws_has_not_happened(library, name, authors, substatus):
    library.insert(library.book("there", "ada", "bea"))
    before = {item["id"]: item["_etag"] for item in query(library.container, "SELECT * FROM c")}
    with refused(400, "Encountered exception while executing Javascript.", substatus=substatus):
        library.insert(library.book(name, *authors))
    assert {item["id"]: item["_etag"] for item in query(library.container, "SELECT * FROM c")} == before


def test_a_trigger_refuses_a_book_without_its_author(library):
    checked = {"pre_trigger_include": "requireAuthor"}
    library.container.create_item(library.book("good", "ada", "bea"), **checked)
    with refused(400, "the author nobody does not exist", substatus=404):
        library.container.create_item(library.book("bad", "ada", "nobody"), **checked)
    with refused(400, "a book needs an author"):
        library.container.create_item(library.book("bad"), **checked)
    with refused(404):
        library.container.read_item("bad", library.key)
    # A book is no author.
    with refused(400, "the author good does not exist", substatus=404):
        library.container.create_item(library.book("bad", "good"), **checked)


def test_a_trigger_keeps_the_count(library):
    both = {"pre_trigger_include": "requireAuthor", "post_trigger_include": "countBook"}
    for name in ("one", "two", "three"):
        library.container.create_item(library.book(name, "ada"), **both)
    assert library.count("ada") == 3
    # The trigger after the write throws: the shelf of the second author stays as it is, too.
    with refused(400, "the shelf of Ada is full"):
        library.container.create_item(library.book("four", "bea", "ada"), **both)
    assert (library.count("ada"), library.count("bea")) == (3, 0)
    assert library.books("ada") == ["one", "three", "two"] and library.books("bea") == []


def test_fifty_clients_lose_no_book(endpoint, database, library):
    def work(number):
        with CosmosClient(endpoint, PRIMARY_KEY) as client:
            own = client.get_database_client(database.id).get_container_client(library.container.id)
            until_done(lambda: library.insert(library.book(f"{number} by ada", "ada"), own))
            until_done(lambda: library.insert(library.book(f"{number} by both", "bea", "ada"), own))
            with refused(400, substatus=404):
                until_done(lambda: library.insert(library.book(f"{number} by nobody", "ada", "nobody"), own))

    at_once(*(lambda number=number: work(number) for number in range(CLIENT_COUNT)))
    assert (library.count("ada"), library.count("bea")) == (2 * CLIENT_COUNT, CLIENT_COUNT)
    assert len(library.books("ada")) == 2 * CLIENT_COUNT and len(library.books("bea")) == CLIENT_COUNT


def test_many_clients_with_triggers_lose_no_book(endpoint, database, library):
    def work(number):
        with CosmosClient(endpoint, PRIMARY_KEY) as client:
            own = client.get_database_client(database.id).get_container_client(library.container.id)
            both = {"pre_trigger_include": "requireAuthor", "post_trigger_include": "countBook"}
            author = "ada" if number % 2 else "bea"
            try:
                until_done(lambda: own.create_item(library.book(str(number), author), **both))
            except exceptions.CosmosHttpResponseError as error:
                assert "is full" in error.message
                return None
            return author

    placed = at_once(*(lambda number=number: work(number) for number in range(10)))
    for author in ("ada", "bea"):
        assert placed.count(author) == library.count(author) == len(library.books(author)) == 3


def test_a_hundred_operations_are_all_or_nothing(library):
    container, key = library.container, library.key
    count = ("patch", ("ada", [{"op": "incr", "path": "/countOfBooks", "value": 99}]))
    books = [("create", (library.book(f"{number:03}", "ada"),)) for number in range(99)]
    spoilt = [*books[:98], ("create", (library.book("000", "ada"),)), count]
    with pytest.raises(exceptions.CosmosBatchOperationError) as caught:
        container.execute_item_batch(spoilt, key)
    assert (caught.value.status_code, caught.value.error_index) == (409, 98)
    assert [result["statusCode"] for result in caught.value.operation_responses] == [424] * 98 + [409, 424]
    assert library.books("ada") == [] and library.count("ada") == 0
    results = container.execute_item_batch([*books, count], key)
    assert [result["statusCode"] for result in results] == [201] * 99 + [200]
    assert len(library.books("ada")) == library.count("ada") == 99


# A post keeps its newest comments and their number; all comments lie beside it, each an item of its own.
ADD_COMMENT = """
function addComment(postId, comment) {
  const collection = getContext().getCollection();
  collection.readDocument(`${collection.getAltLink()}/docs/${postId}`, (error, post) => {
    if (error) throw error;
    post.commentCount += 1;
    const { id, author, text } = comment;
    post.newest = [{ id, author, text }, ...post.newest].slice(0, 3);
    collection.replaceDocument(post._self, post, (failure) => { if (failure) throw failure; });
    const item = { ...comment, postId, type: "comment", number: post.commentCount };
    collection.createDocument(collection.getSelfLink(), item, (failure) => { if (failure) throw failure; });
    getContext().getResponse().setBody(post.commentCount);
  });
}"""
# A reader has a new name: everything the reader wrote here says so.
RENAME = """
function rename(userId, name) {
  const collection = getContext().getCollection();
  let changed = 0;
  const query = { query: "SELECT * FROM c WHERE c.author.id = @id", parameters: [{ name: "@id", value: userId }] };
  const page = (continuation) => collection.queryDocuments(
    collection.getSelfLink(), query, { pageSize: 2, continuation }, (error, found, about) => {
      if (error) throw error;
      for (const item of found) {
        item.author.name = name;
        collection.replaceDocument(item._self, item, (failure) => {
          if (failure) throw failure;
          changed += 1;
          getContext().getResponse().setBody(changed);
        });
      }
      if (about.continuation) page(about.continuation);
    });
  page();
}"""


@pytest.fixture
def blog(make_container):
    container = make_container("/postId")
    post = {"id": "post", "postId": "post", "type": "post", "title": "Modelling", "commentCount": 0, "newest": []}
    container.create_item({**post, "author": {"id": "u0", "name": "Writer"}})
    return container


def comment(number, user="u1", name="Reader"):
    return {"id": f"c{number:02}", "author": {"id": user, "name": name}, "text": f"comment {number}"}


def test_a_blog_keeps_its_newest_comments(blog):
    procedures = Procedures(blog)
    for number in range(1, 8):
        assert procedures.run(ADD_COMMENT, "post", "post", comment(number)) == number
    post = blog.read_item("post", "post")
    assert post["commentCount"] == 7 and ids(post["newest"]) == ["c07", "c06", "c05"]
    page = "SELECT VALUE c.text FROM c WHERE c.type = 'comment' ORDER BY c.number DESC OFFSET @skip LIMIT 3"
    pages = [query(blog, page, values={"skip": skip}, partition_key="post") for skip in (0, 3, 6)]
    assert [len(one) for one in pages] == [3, 3, 1] and pages[2] == ["comment 1"]
    with refused(400, substatus=409):
        procedures.run(ADD_COMMENT, "post", "post", comment(7))
    assert blog.read_item("post", "post") == post


def test_comments_at_once_are_all_counted(blog):
    procedures = Procedures(blog)
    procedures.name(ADD_COMMENT)
    acts = (lambda n=n: until_done(lambda: procedures.run(ADD_COMMENT, "post", "post", comment(n))) for n in range(20))
    assert sorted(at_once(*acts)) == list(range(1, 21))
    post = blog.read_item("post", "post")
    numbers = "SELECT VALUE c.number FROM c WHERE c.type = 'comment' ORDER BY c.number"
    assert post["commentCount"] == 20 and query(blog, numbers, partition_key="post") == list(range(1, 21))
    # What is embedded is what came last.
    newest = "SELECT VALUE c.id FROM c WHERE c.type = 'comment' ORDER BY c.number DESC OFFSET 0 LIMIT 3"
    assert ids(post["newest"]) == query(blog, newest, partition_key="post")


def test_a_name_is_changed_wherever_it_was_embedded(blog):
    procedures = Procedures(blog)
    for number in range(1, 8):
        user, name = ("u1", "Reader") if number % 2 else ("u2", "Other")
        procedures.run(ADD_COMMENT, "post", "post", comment(number, user, name))
    assert procedures.run(RENAME, "post", "u1", "Renamed") == 4
    text = "SELECT c.author.name, COUNT(1) AS count FROM c WHERE c.type = 'comment' GROUP BY c.author.name"
    found = sorted(query(blog, text, partition_key="post"), key=lambda row: row["name"])
    assert found == [{"name": "Other", "count": 3}, {"name": "Renamed", "count": 4}]


# Buys or sells: the account and the holding change together, and neither below nothing.
TRADE = """
function trade(symbol, units, price) {
  const collection = getContext().getCollection();
  const link = (id) => `${collection.getAltLink()}/docs/${id}`;
  collection.readDocument(link("account"), (error, account) => {
    if (error) throw error;
    account.cash -= units * price;
    if (account.cash < 0) throw new Error("there is not enough money");
    const holding = account.holdings.find((one) => one.stock === symbol);
    if (holding) holding.units += units;
    else account.holdings.push({ stock: symbol, units });
    if (account.holdings.some((one) => one.units < 0)) throw new Error("there are not enough units");
    account.holdings = account.holdings.filter((one) => one.units > 0);
    account.trades += 1;
    collection.replaceDocument(account._self, account, { etag: account._etag });
    const order = { id: `order-${account.trades}`, person: account.person, symbol, units, price };
    collection.createDocument(collection.getSelfLink(), order);
    getContext().getResponse().setBody(account.trades);
  });
}"""


@pytest.fixture
def market(make_container):
    """Stocks, which change all day, and accounts, which refer to them."""
    stocks, accounts = make_container("/symbol"), make_container("/person")
    for symbol, price in (("AAA", 10), ("BBB", 25)):
        stocks.create_item({"id": symbol, "symbol": symbol, "price": price, "volume": 0})
    accounts.create_item({"id": "account", "person": "p", "cash": 1_000, "holdings": [], "trades": 0})
    return stocks, accounts


def value_of(stocks, account):
    wanted = [(holding["stock"], holding["stock"]) for holding in account["holdings"]]
    prices = {stock["id"]: stock["price"] for stock in stocks.read_items(wanted)}
    return account["cash"] + sum(holding["units"] * prices[holding["stock"]] for holding in account["holdings"])


def test_a_portfolio_refers_to_stocks_that_change(market):
    stocks, accounts = market
    procedures = Procedures(accounts)
    procedures.run(TRADE, "p", "AAA", 20, 10)
    procedures.run(TRADE, "p", "BBB", 8, 25)
    account = accounts.read_item("account", "p")
    assert account["cash"] == 600 and value_of(stocks, account) == 1_000
    stocks.patch_item("AAA", "AAA", [{"op": "set", "path": "/price", "value": 15}])
    assert value_of(stocks, account) == 1_100
    text = "SELECT VALUE h.units FROM c JOIN h IN c.holdings WHERE h.stock = 'BBB'"
    assert query(accounts, text) == [8]
    for symbol, units, price, why in (("AAA", 100, 15, "money"), ("BBB", -9, 25, "units"), ("CCC", -1, 1, "units")):
        with refused(400, f"there {'is' if why == 'money' else 'are'} not enough {why}"):
            procedures.run(TRADE, "p", symbol, units, price)
    assert accounts.read_item("account", "p") == account
    assert procedures.run(TRADE, "p", "BBB", -8, 30) == 3
    assert content(accounts.read_item("account", "p"))["holdings"] == [{"stock": "AAA", "units": 20}]


def test_trades_at_once_neither_make_nor_lose_money(market):
    stocks, accounts = market
    procedures = Procedures(accounts)
    procedures.name(TRADE)

    def trade(seed):
        chance, done = random.Random(seed), 0
        for _ in range(4):
            symbol, price = chance.choice([("AAA", 10), ("BBB", 25)])
            try:
                until_done(lambda: procedures.run(TRADE, "p", symbol, chance.choice([-3, 5, 8]), price))
                stocks.patch_item(symbol, symbol, [{"op": "incr", "path": "/volume", "value": 1}])
                done += 1
            except exceptions.CosmosHttpResponseError as error:
                assert "not enough" in error.message
        return done

    done = sum(at_once(*(lambda seed=seed: trade(seed) for seed in range(8))))
    account = accounts.read_item("account", "p")
    assert account["trades"] == done
    assert value_of(stocks, account) == 1_000
    assert sum(query(stocks, "SELECT VALUE c.volume FROM c")) == done
    orders = query(accounts, "SELECT VALUE c.id FROM c WHERE STARTSWITH(c.id, 'order-')", partition_key="p")
    assert sorted(orders) == sorted(f"order-{number}" for number in range(1, done + 1))
    for holding in account["holdings"]:
        text = "SELECT VALUE SUM(c.units) FROM c WHERE c.symbol = @symbol"
        assert query(accounts, text, values={"symbol": holding["stock"]}, partition_key="p") == [holding["units"]]


@pytest.fixture
def shelf(make_container):
    return make_container("/shelf")


def test_books_refer_to_their_publisher(shelf):
    """The side that grows without bound holds the reference: the publisher stays small."""
    publisher = {"id": "pub", "shelf": "s", "type": "publisher", "name": "Press", "countOfBooks": 0}
    shelf.create_item(publisher)
    for first in range(0, 60, 20):
        books = [
            ("create", ({"id": f"b{n:02}", "shelf": "s", "type": "book", "name": f"Book {n}", "pub": "pub"},))
            for n in range(first, first + 20)
        ]
        count = ("patch", ("pub", [{"op": "incr", "path": "/countOfBooks", "value": 20}]))
        shelf.execute_item_batch([*books, count], "s")
    assert content(shelf.read_item("pub", "s")) == {**publisher, "countOfBooks": 60}
    text = "SELECT VALUE c.id FROM c WHERE c.pub = @pub ORDER BY c.id"
    assert query(shelf, text, values={"pub": "pub"}, partition_key="s", max_item_count=7) == [
        f"b{n:02}" for n in range(60)
    ]
    # Removing the publisher is for those who have removed the books, or nothing happens.
    remove = """
    function removePublisher(id) {
      const parameters = [{ name: "@id", value: id }];
      const query = { query: "SELECT VALUE COUNT(1) FROM c WHERE c.pub = @id", parameters };
      __.deleteDocument(`${__.getAltLink()}/docs/${id}`, (error) => {
        if (error) throw error;
        __.queryDocuments(__.getSelfLink(), query, (failure, [count]) => {
          if (failure) throw failure;
          if (count > 0) throw new Error(ErrorCodes.Conflict, `${count} books refer to it`);
        });
      });
    }"""
    procedures = Procedures(shelf)
    with refused(400, "60 books refer to it", substatus=409):
        procedures.run(remove, "s", "pub")
    books = "SELECT * FROM c WHERE c.type = 'book'"
    assert procedures.run(script_text("bulk_delete"), "s", books, 25) == {"deleted": 60, "more": False}
    procedures.run(remove, "s", "pub")
    assert query(shelf, "SELECT * FROM c", partition_key="s") == []


def test_books_and_authors_refer_to_each_other(shelf):
    """Many to many: each side holds the ids of the other, and one batch changes both."""

    def link(book, *authors):
        create = ("create", ({"id": book, "shelf": "s", "type": "book", "authors": list(authors)},))
        notes = [("patch", (author, [{"op": "add", "path": "/books/-", "value": book}])) for author in authors]
        return shelf.execute_item_batch([create, *notes], "s")

    for author in ("a1", "a2"):
        shelf.create_item({"id": author, "shelf": "s", "type": "author", "books": []})
    link("b1", "a1")
    link("b2", "a1", "a2")
    with pytest.raises(exceptions.CosmosBatchOperationError) as caught:
        link("b3", "a2", "a3")
    assert caught.value.status_code == 404
    assert {item["id"]: item["books"] for item in query(shelf, "SELECT * FROM c WHERE c.type = 'author'")} == {
        "a1": ["b1", "b2"],
        "a2": ["b2"],
    }
    text = "SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.authors, @author) ORDER BY c.id"
    assert query(shelf, text, values={"author": "a1"}, partition_key="s") == ["b1", "b2"]
    assert query(shelf, "SELECT VALUE b FROM c JOIN b IN c.books WHERE c.id = 'a2'", partition_key="s") == ["b2"]
