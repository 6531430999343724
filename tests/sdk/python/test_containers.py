"""Containers: life, every policy, what replace may change, refusals."""

import json
import pathlib

import pytest
from azure.cosmos import PartitionKey, exceptions

from support import Hook, fresh, ids, refused

CASES = json.loads((pathlib.Path(__file__).parents[1] / "cases/container_policies.json").read_text(encoding="utf-8"))
KEY = {"paths": ["/pk"], "kind": "Hash", "version": 2}


def cases(kind):
    return pytest.mark.parametrize("case", CASES[kind], ids=lambda case: case["name"].replace(" ", "_"))


@pytest.fixture
def create(connection, database):
    """Creates a container from a bare definition, which may have members that create_container has no argument for."""
    return lambda definition: connection.CreateContainer(
        database.database_link, {"id": fresh("policies"), "partitionKey": KEY, **definition}
    )


@pytest.fixture
def replace(connection, database):
    return lambda definition, **options: connection.ReplaceContainer(
        f"{database.database_link}/colls/{definition['id']}", definition, options
    )


@cases("accepted")
def test_accepted_and_shown_again(create, database, case):
    created = create(case["definition"])
    for name, value in case.get("stored", case["definition"]).items():
        assert created[name] == value
    read = database.get_container_client(created["id"]).read()
    assert dict(read) == dict(created)
    assert [dict(one) for one in database.list_containers() if one["id"] == created["id"]] == [dict(created)]
    database.delete_container(created["id"])


@cases("refused")
def test_refused_and_not_created(create, database, case):
    before = ids(database.list_containers())
    with refused(400, case.get("message", "")):
        create(case["definition"])
    assert ids(database.list_containers()) == before


@cases("replaced")
def test_replace(create, replace, database, case):
    created = create(case["from"])
    definition = {"id": created["id"], "partitionKey": KEY, **case["to"]}
    if "refused" in case:
        with refused(400, case["refused"]):
            replace(definition)
        assert dict(database.get_container_client(created["id"]).read()) == dict(created)
        return
    replaced = replace(definition)
    for name, value in case.get("stored", case["to"]).items():
        assert replaced[name] == value
    for name in case.get("absent", []):
        assert name not in replaced
    assert replaced["_rid"] == created["_rid"] and replaced["_etag"] != created["_etag"]
    assert dict(database.get_container_client(created["id"]).read()) == dict(replaced)


def test_a_created_container_has_the_properties_of_the_service(database):
    hook = Hook()
    container = database.create_container(fresh("container"), PartitionKey("/pk"), response_hook=hook)
    properties = container.read()
    owner = database.read()
    assert properties["_self"] == f"{owner['_self']}colls/{properties['_rid']}/"
    assert len(properties["_rid"]) == 12 and properties["_rid"].startswith(owner["_rid"][:5])
    links = {name: properties[f"_{name}"] for name in ("docs", "sprocs", "triggers", "udfs", "conflicts")}
    assert links == {name: f"{name}/" for name in links}
    assert properties["partitionKey"] == KEY
    assert hook.headers["etag"] == properties["_etag"]
    assert hook.headers["x-ms-alt-content-path"] == f"dbs/{database.id}"
    assert hook.headers["x-ms-content-path"] == owner["_rid"]


def test_creating_a_name_twice_conflicts(database, container):
    with refused(409, "(Conflict)") as caught:
        database.create_container(container.id, PartitionKey("/pk"))
    assert isinstance(caught.value, exceptions.CosmosResourceExistsError)


def test_create_if_not_exists_creates_once(database):
    name = fresh("container")
    first = database.create_container_if_not_exists(name, PartitionKey("/pk")).read()
    second = database.create_container_if_not_exists(name, PartitionKey("/other")).read()
    assert dict(first) == dict(second)


def test_a_deleted_container_is_gone_and_its_name_free(database):
    name = fresh("container")
    first = database.create_container(name, PartitionKey("/pk"))
    first.create_item({"id": "1", "pk": "a"})
    old = first.read()
    database.delete_container(name)
    with refused(404, "(NotFound)"):
        database.get_container_client(name).read()
    with refused(404):
        database.delete_container(name)
    again = database.create_container(name, PartitionKey("/pk"))
    assert again.read()["_rid"] != old["_rid"]
    assert list(again.read_all_items()) == []


def test_a_client_that_knew_the_old_container_works_with_the_new_one(client, database):
    name = fresh("container")
    first = database.create_container(name, PartitionKey("/pk"))
    first.create_item({"id": "1", "pk": "a"})
    client.client_connection.DeleteContainer(f"{database.database_link}/colls/{name}")
    client.client_connection.CreateContainer(database.database_link, {"id": name, "partitionKey": KEY})
    first.create_item({"id": "2", "pk": "a"})
    assert ids(first.read_all_items()) == ["2"]


@pytest.mark.parametrize("act", ["read_item", "create_item", "read_all_items", "list_conflicts", "pkranges", "sprocs"])
def test_what_is_below_a_missing_container_is_not_found(connection, database, act):
    missing = f"{database.database_link}/colls/{fresh('missing')}"
    options = {"partitionKey": "a"}
    acts = {
        "read_item": lambda: connection.ReadItem(f"{missing}/docs/1", options),
        "create_item": lambda: connection.CreateItem(missing, {"id": "1", "pk": "a"}, options),
        "read_all_items": lambda: list(connection.ReadItems(missing)),
        "list_conflicts": lambda: list(connection.ReadConflicts(missing)),
        "pkranges": lambda: list(connection._ReadPartitionKeyRanges(missing)),
        "sprocs": lambda: list(connection.ReadStoredProcedures(missing)),
    }
    with pytest.raises(exceptions.CosmosResourceNotFoundError):
        acts[act]()


def test_a_list_in_pages_of_one_is_the_same_list(client):
    database = client.create_database(fresh("db"))
    names = [fresh("listed") for _ in range(3)]
    for name in names:
        database.create_container(name, PartitionKey("/pk"))
    pages = [ids(page) for page in database.list_containers(max_item_count=1).by_page()]
    assert [page for page in pages if page] == [[name] for name in names]
    assert ids(database.list_containers()) == names
    client.delete_database(database)


def test_a_lookup_by_id_finds_exactly_that_container(database, container):
    query = "SELECT * FROM root r WHERE r.id=@id"
    found = database.query_containers(query, parameters=[{"name": "@id", "value": container.id}])
    assert ids(found) == [container.id]
    assert list(database.query_containers(query, parameters=[{"name": "@id", "value": "missing"}])) == []


@pytest.mark.parametrize("name", ["", "a" * 256])
def test_a_bad_name_is_refused(database, name):
    with refused(400, "Ensure to provide a unique non-empty string less than '255' characters."):
        database.create_container(name, PartitionKey("/pk"))


def test_without_a_partition_key_there_is_the_system_key(create, database):
    created = create({"partitionKey": None})
    assert created["partitionKey"]["paths"] == ["/_partitionKey"] and created["partitionKey"]["systemKey"] is True
    container = database.get_container_client(created["id"])
    container.create_item({"id": "1", "text": "no key"})
    assert container.read_item("1", {})["text"] == "no key"
    assert ids(container.read_all_items()) == ["1"]


def test_replace_only_if_the_etag_is_current(create, replace):
    created = create({})
    definition = {"id": created["id"], "partitionKey": KEY}
    conditions = lambda etag: {"accessCondition": {"type": "IfMatch", "condition": etag}}
    replaced = replace({**definition, "defaultTtl": 10}, **conditions(created["_etag"]))
    with refused(412):
        replace({**definition, "defaultTtl": 20}, **conditions(created["_etag"]))
    assert replace({**definition, "defaultTtl": 20}, **conditions(replaced["_etag"]))["defaultTtl"] == 20


def test_replace_by_the_methods_of_the_sdk(database, make_container):
    container = make_container(default_ttl=60)
    _, replaced = database.replace_container(container, PartitionKey("/pk"), default_ttl=90, return_properties=True)
    assert replaced["defaultTtl"] == 90
    _, replaced = database.replace_container(container, PartitionKey("/pk"), return_properties=True)
    assert "defaultTtl" not in replaced


def test_replacing_a_missing_container_is_not_found(database):
    with refused(404):
        database.replace_container(fresh("missing"), PartitionKey("/pk"), default_ttl=90)


def test_a_read_tells_quota_and_usage_if_asked(container):
    hook = Hook()
    container.read(populate_quota_info=True, response_hook=hook)
    assert hook.headers["x-ms-documentdb-collection-index-transformation-progress"] == "100"
    assert "x-ms-documentdb-collection-lazy-indexing-progress" not in hook.headers
    for name in ("x-ms-resource-quota", "x-ms-resource-usage"):
        values = dict(pair.split("=") for pair in hook.headers[name].rstrip(";").split(";"))
        assert "documentsCount" in values and "collectionSize" in values


def test_a_read_tells_statistics_if_asked(container):
    container.create_item({"id": "statistics", "pk": "a"})
    properties = container.read(populate_partition_key_range_statistics=True)
    assert [entry["id"] for entry in properties["statistics"]] == ["0"]
    assert properties["statistics"][0]["documentCount"] >= 1


def test_a_container_is_read_by_its_rid_too(connection, container):
    properties = container.read()
    assert connection.ReadContainer(properties["_self"])["id"] == container.id


def test_a_container_that_is_not_modified_is_not_sent_again(connection, container):
    etag = container.read()["_etag"]
    options = {"accessCondition": {"type": "IfNoneMatch", "condition": etag}}
    assert not connection.ReadContainer(container.container_link, options)
    assert connection.last_response_headers["etag"] == etag


def test_delete_only_if_the_etag_is_current(connection, make_container):
    container = make_container()
    conditions = lambda etag: {"accessCondition": {"type": "IfMatch", "condition": etag}}
    with refused(412):
        connection.DeleteContainer(container.container_link, conditions('"00000000-0000-0000-0000-000000000000"'))
    connection.DeleteContainer(container.container_link, conditions(container.read()["_etag"]))
    with refused(404):
        container.read()
