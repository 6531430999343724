"""Databases: life, lists, lookups and refusals."""

import pytest
from azure.cosmos import exceptions

from support import GUID, Hook, fresh, ids, refused


@pytest.fixture(scope="module")
def three(client):
    """The names of three databases, in the order of their creation."""
    names = [fresh("listed") for _ in range(3)]
    for name in names:
        client.create_database(name)
    yield names
    for name in names:
        client.delete_database(name)


def test_a_created_database_has_the_properties_of_the_service(client):
    name, hook = fresh("db"), Hook()
    client.create_database(name, response_hook=hook)
    properties = client.get_database_client(name).read()
    assert properties["id"] == name
    assert properties["_self"] == f"dbs/{properties['_rid']}/"
    assert len(properties["_rid"]) == 8
    assert properties["_colls"] == "colls/" and properties["_users"] == "users/"
    assert properties["_etag"].startswith('"') and isinstance(properties["_ts"], int)
    assert hook.headers["etag"] == properties["_etag"]
    assert GUID.fullmatch(hook.headers["x-ms-activity-id"])
    assert float(hook.headers["x-ms-request-charge"]) > 0
    client.delete_database(name)


def test_creating_a_name_twice_conflicts(client, database):
    with refused(409, "(Conflict)", substatus=3206) as caught:
        client.create_database(database.id)
    assert isinstance(caught.value, exceptions.CosmosResourceExistsError)


def test_create_if_not_exists_creates_once(client):
    name = fresh("db")
    first = client.create_database_if_not_exists(name).read()
    second = client.create_database_if_not_exists(name).read()
    assert first["_rid"] == second["_rid"] and first["_etag"] == second["_etag"]
    client.delete_database(name)


@pytest.mark.parametrize("act", ["read", "delete", "list_containers", "create_container", "list_users"])
def test_a_missing_database_is_not_found(client, act):
    missing = client.get_database_client(fresh("missing"))
    acts = {
        "read": missing.read,
        "delete": lambda: client.delete_database(missing.id),
        "list_containers": lambda: list(missing.list_containers()),
        "create_container": lambda: missing.create_container("c", {"paths": ["/pk"], "kind": "Hash"}),
        "list_users": lambda: list(missing.list_users()),
    }
    with pytest.raises(exceptions.CosmosResourceNotFoundError) as caught:
        acts[act]()
    assert "(NotFound)" in caught.value.message


def test_a_deleted_database_takes_everything_below_with_it(client):
    database = client.create_database(fresh("db"))
    database.create_container("c", {"paths": ["/pk"], "kind": "Hash"}).create_item({"id": "1", "pk": "a"})
    database.create_user({"id": "u"})
    client.delete_database(database)
    again = client.create_database(database.id)
    assert list(again.list_containers()) == [] and list(again.list_users()) == []
    with refused(404):
        again.get_container_client("c").read()
    client.delete_database(database.id)


def test_a_recreated_database_has_a_new_rid(client):
    name = fresh("db")
    first = client.create_database(name).read()
    client.delete_database(name)
    second = client.create_database(name).read()
    assert first["_rid"] != second["_rid"]
    client.delete_database(name)


def test_list_databases_has_all(client, three):
    listed = ids(client.list_databases())
    assert [name for name in listed if name in three] == three


def test_a_list_in_pages_of_one_is_the_same_list(client, three):
    pages = [list(page) for page in client.list_databases(max_item_count=1).by_page()]
    assert all(len(page) <= 1 for page in pages)
    listed = [database["id"] for page in pages for database in page]
    assert [name for name in listed if name in three] == three
    assert listed == ids(client.list_databases())


def test_a_list_goes_on_from_its_continuation_token(client, three):
    first = client.list_databases(max_item_count=2).by_page()
    head = ids(next(first))
    rest = client.list_databases(max_item_count=2).by_page(first.continuation_token)
    assert head + [database["id"] for page in rest for database in page] == ids(client.list_databases())


def test_a_garbage_continuation_token_is_refused(client):
    with refused(400, "Invalid Continuation Token"):
        next(client.list_databases(max_item_count=1).by_page("garbage"))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM root r WHERE r.id=@id",
        "SELECT * FROM c WHERE c.id = @id",
        'SELECT * FROM root r WHERE r["id"] = @id',
    ],
)
def test_a_lookup_by_id_finds_exactly_that_database(client, three, query):
    found = client.query_databases(query, parameters=[{"name": "@id", "value": three[1]}])
    assert ids(found) == [three[1]]
    assert list(client.query_databases(query, parameters=[{"name": "@id", "value": fresh("missing")}])) == []


@pytest.mark.parametrize("name", ["a" * 256, "ü" * 256])
def test_a_name_that_is_too_long_is_refused(client, name):
    with refused(400, "Ensure to provide a unique non-empty string less than '255' characters."):
        client.create_database(name)


@pytest.mark.parametrize(
    "name", ["a" * 255, "with space", "colls", "dbs", "ÄÖÜ 日本語 🚀", "a+b=c&d%20e", "'\"", "@:;,$!*()"]
)
def test_unusual_names_work(client, name):
    client.create_database(name)
    assert client.get_database_client(name).read()["id"] == name
    assert name in ids(client.list_databases())
    container = client.get_database_client(name).create_container(name, {"paths": ["/pk"], "kind": "Hash"})
    container.create_item({"id": "1", "pk": name})
    assert container.read_item("1", name)["pk"] == name
    client.delete_database(name)
    with refused(404):
        client.get_database_client(name).read()


def test_an_empty_name_is_refused(client):
    with refused(400, "Ensure to provide a unique non-empty string less than '255' characters."):
        client.create_database("")


def test_names_are_case_sensitive(client):
    name = fresh("Case")
    upper, lower = client.create_database(name.upper()), client.create_database(name.lower())
    assert upper.read()["_rid"] != lower.read()["_rid"]
    client.delete_database(upper), client.delete_database(lower)


def test_a_database_is_read_by_its_rid_too(client, database, connection):
    properties = database.read()
    assert connection.ReadDatabase(properties["_self"])["id"] == database.id
