"""Users and permissions, and clients that have nothing but resource tokens."""

import time

import pytest
from azure.cosmos import CosmosClient, PartitionKey, exceptions

from server import PRIMARY_KEY
from support import fresh, ids, refused

EXPIRY_SECONDS_MIN = 10


@pytest.fixture(scope="module")
def user(database):
    return database.create_user({"id": fresh("user")})


@pytest.fixture(scope="module")
def guarded(database):
    """A container with an item in each of the partitions a and b."""
    container = database.create_container(fresh("guarded"), PartitionKey("/pk"))
    for key in ("a", "b"):
        container.create_item({"id": "1", "pk": key})
    return container


@pytest.fixture
def holder(endpoint, database, user):
    """Makes a client that has the token of a new permission and nothing else."""
    clients = []

    def make(resource, mode, **more):
        holder = database.create_user({"id": fresh("holder")})
        permission = holder.create_permission({"id": fresh("p"), "permissionMode": mode, "resource": resource, **more})
        return of_token(resource, permission.properties["_token"])

    def of_token(resource, token):
        clients.append(CosmosClient(endpoint, {resource: token}))
        return clients[-1].get_database_client(database.id)

    make.of_token = of_token
    yield make
    for client in clients:
        client.close()


# Users


def test_the_life_of_a_user(database):
    name = fresh("user")
    user = database.create_user({"id": name})
    created = user.read()
    assert created["id"] == name and created["_permissions"] == "permissions/"
    assert created["_self"] == f"{database.read()['_self']}users/{created['_rid']}/"
    with refused(409):
        database.create_user({"id": name})
    renamed = database.replace_user(user, {"id": name + "-new"}).read()
    assert renamed["_rid"] == created["_rid"] and renamed["_etag"] != created["_etag"]
    with refused(404):
        database.get_user_client(name).read()
    assert database.upsert_user({"id": name + "-new"}).read()["_rid"] == created["_rid"]
    database.delete_user(name + "-new")
    with refused(404):
        database.get_user_client(name + "-new").read()
    with refused(404):
        database.delete_user(name + "-new")


def test_users_are_listed_and_looked_up(client):
    database = client.create_database(fresh("db"))
    names = [fresh("user") for _ in range(3)]
    for name in names:
        database.create_user({"id": name})
    assert ids(database.list_users()) == names
    assert [ids(page) for page in database.list_users(max_item_count=2).by_page()] == [names[:2], names[2:]]
    found = database.query_users("SELECT * FROM root r WHERE r.id=@id", parameters=[{"name": "@id", "value": names[1]}])
    assert ids(found) == [names[1]]
    client.delete_database(database)


@pytest.mark.parametrize("name", ["", "a" * 256], ids=["empty", "too long"])
def test_a_bad_name_of_a_user_is_refused(database, name):
    with refused(400):
        database.create_user({"id": name})


# Permissions


def test_the_life_of_a_permission(database, guarded):
    user = database.create_user({"id": fresh("user")})
    body = {"id": "p", "permissionMode": "Read", "resource": guarded.container_link}
    permission = user.create_permission(body)
    properties = permission.properties
    assert {name: properties[name] for name in body} == body
    assert properties["_token"].startswith("type=resource&ver=1")
    assert properties["_self"] == f"{user.read()['_self']}permissions/{properties['_rid']}/"
    assert user.get_permission("p").properties["_rid"] == properties["_rid"]
    with refused(409):
        user.create_permission(body)
    replaced = user.replace_permission("p", {**body, "permissionMode": "All"})
    assert replaced.permission_mode == "All" and replaced.properties["_rid"] == properties["_rid"]
    assert user.upsert_permission({**body, "permissionMode": "Read"}).permission_mode == "Read"
    assert ids(user.list_permissions()) == ["p"]
    assert all(listed["_token"] for listed in user.list_permissions())
    found = user.query_permissions("SELECT * FROM root r WHERE r.id=@id", parameters=[{"name": "@id", "value": "p"}])
    assert ids(found) == ["p"]
    user.delete_permission("p")
    with refused(404):
        user.get_permission("p")
    assert list(user.list_permissions()) == []


def test_permissions_go_with_their_user(database, guarded):
    user = database.create_user({"id": fresh("user")})
    user.create_permission({"id": "p", "permissionMode": "Read", "resource": guarded.container_link})
    database.delete_user(user.id)
    again = database.create_user({"id": user.id})
    assert list(again.list_permissions()) == []


@pytest.mark.parametrize(
    "body",
    [
        {"permissionMode": "Write", "resource": "dbs/d/colls/c"},
        {"permissionMode": "Read"},
        {"resource": "dbs/d/colls/c"},
    ],
    ids=["unknown mode", "no resource", "no mode"],
)
def test_a_bad_permission_is_refused(user, body):
    name = fresh("p")
    with refused(400):
        user.create_permission({"id": name, **body})
    assert name not in ids(user.list_permissions())


@pytest.mark.parametrize("seconds", [1, 9, 86401, 10**12])
def test_a_bad_lifetime_is_refused_and_changes_nothing(user, guarded, seconds):
    body = {"id": fresh("p"), "permissionMode": "Read", "resource": guarded.container_link}
    for act in (user.create_permission, user.upsert_permission):
        with refused(400):
            act(body, resource_token_expiry_seconds=seconds)
    with refused(404):
        user.get_permission(body["id"])


# Holders of tokens


def test_a_reader_reads_and_writes_nothing(holder, guarded):
    container = holder(guarded.container_link, "Read").get_container_client(guarded.id)
    assert container.read()["id"] == guarded.id
    assert container.read_item("1", "a")["pk"] == "a"
    assert len(list(container.read_all_items())) == 2
    acts = [
        lambda: container.create_item({"id": "2", "pk": "a"}),
        lambda: container.upsert_item({"id": "1", "pk": "a", "changed": True}),
        lambda: container.replace_item("1", {"id": "1", "pk": "a", "changed": True}),
        lambda: container.delete_item("1", "a"),
        lambda: container.delete_all_items_by_partition_key("a"),
    ]
    for act in acts:
        with refused(403, "(Forbidden)"):
            act()
    assert "changed" not in guarded.read_item("1", "a")


def test_a_writer_writes(holder, guarded):
    container = holder(guarded.container_link, "All").get_container_client(guarded.id)
    body = {"id": fresh("item"), "pk": "w"}
    container.create_item(body)
    container.upsert_item({**body, "value": 1})
    container.replace_item(body["id"], {**body, "value": 2})
    assert container.read_item(body["id"], "w")["value"] == 2
    container.delete_item(body["id"], "w")


def test_a_token_is_for_its_container_only(holder, database, guarded):
    other = database.create_container(fresh("other"), PartitionKey("/pk"))
    other.create_item({"id": "1", "pk": "a"})
    token = holder(guarded.container_link, "All").client_connection.resource_tokens[guarded.container_link]
    # The same token, held for another container.
    intruder = holder.of_token(other.container_link, token)
    with refused(403, "(Forbidden)"):
        intruder.get_container_client(other.id).read_item("1", "a")
    with refused(403):
        intruder.get_container_client(other.id).create_item({"id": "2", "pk": "a"})
    with refused(403):
        intruder.client_connection.DeleteContainer(other.container_link)
    assert ids(other.read_all_items()) == ["1"]


def test_a_token_of_a_container_does_not_list_or_make_containers(holder, database, guarded):
    token = holder(guarded.container_link, "All").client_connection.resource_tokens[guarded.container_link]
    intruder = holder.of_token(database.database_link, token)
    with refused(403):
        list(intruder.list_containers())
    with refused(403):
        intruder.create_container("c", PartitionKey("/pk"))
    with refused(403):
        intruder.create_user({"id": "u"})


def test_a_token_of_one_partition_opens_that_partition_only(holder, guarded):
    container = holder(guarded.container_link, "All", resourcePartitionKey=["a"]).get_container_client(guarded.id)
    assert container.read_item("1", "a")["pk"] == "a"
    container.upsert_item({"id": "mine", "pk": "a"})
    assert ids(container.read_all_items(feed_options={"partitionKey": "a"})) == ["1", "mine"]
    container.delete_item("mine", "a")
    with refused(403, "(Forbidden)"):
        container.read_item("1", "b")
    with refused(403):
        container.create_item({"id": "2", "pk": "b"})
    with refused(403):
        list(container.read_all_items())


def test_a_token_of_one_item_opens_that_item_only(holder, guarded):
    link = f"{guarded.container_link}/docs/1"
    container = holder(link, "Read", resourcePartitionKey=["a"]).get_container_client(guarded.id)
    assert container.read_item("1", "a")["pk"] == "a"
    with refused(403):
        container.read_item("1", "b")


def test_a_forged_token_is_unauthorized(holder, endpoint, guarded):
    token = holder(guarded.container_link, "Read").client_connection.resource_tokens[guarded.container_link]
    head, _, tail = token.partition("sig=")
    forged = head + "sig=" + ("B" if tail[0] == "A" else "A") + tail[1:]
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        CosmosClient(endpoint, {guarded.container_link: forged})
    assert caught.value.status_code == 401


def test_a_token_dies_with_its_container(holder, database):
    name = fresh("container")
    link = database.create_container(name, PartitionKey("/pk")).container_link
    container = holder(link, "All").get_container_client(name)
    container.create_item({"id": "1", "pk": "a"})
    database.delete_container(name)
    database.create_container(name, PartitionKey("/pk")).create_item({"id": "1", "pk": "a"})
    with refused(403):
        container.client_connection.ReadItem(f"{link}/docs/1", {"partitionKey": "a"})


def test_a_token_expires(server):
    """Both schemes wait together."""
    with CosmosClient(server.endpoint("http"), PRIMARY_KEY) as owner:
        database = owner.create_database(fresh("expiry"))
        container = database.create_container("c", PartitionKey("/pk"))
        container.create_item({"id": "1", "pk": "a"})
        user = database.create_user({"id": "u"})
        body = {"id": "p", "permissionMode": "Read", "resource": container.container_link}
        permission = user.create_permission(body, resource_token_expiry_seconds=EXPIRY_SECONDS_MIN)

        def client(scheme, token):
            return CosmosClient(server.endpoint(scheme), {container.container_link: token})

        def read(holder):
            return holder.get_database_client(database.id).get_container_client("c").read_item("1", "a")

        token = permission.properties["_token"]
        with client("http", token) as plain, client("https", token) as encrypted:
            assert read(plain)["id"] == read(encrypted)["id"] == "1"
            time.sleep(EXPIRY_SECONDS_MIN + 1)
            for holder in (plain, encrypted):
                with refused(403, "(Forbidden)"):
                    read(holder)
        # A read of the permission gives a new token.
        with client("https", user.get_permission("p").properties["_token"]) as renewed:
            assert read(renewed)["id"] == "1"
        owner.delete_database(database)
