"""The account: what it says about itself, and who may do what with which key."""

import pytest
from azure.cosmos import CosmosClient, exceptions

from server import PRIMARY_KEY, READ_ONLY_KEY, SECONDARY_KEY
from support import fresh, refused


def test_the_account_names_the_endpoint_that_the_client_used(client, endpoint):
    account = client.get_database_account()
    assert account.ConsistencyPolicy["defaultConsistencyLevel"] == "Session"
    assert [place["databaseAccountEndpoint"] for place in account.WritableLocations] == [endpoint]
    assert [place["databaseAccountEndpoint"] for place in account.ReadableLocations] == [endpoint]
    assert account.DatabasesLink == "/dbs/"
    assert account._EnableMultipleWritableLocations is False


def test_a_connection_string_works(endpoint):
    with CosmosClient.from_connection_string(f"AccountEndpoint={endpoint};AccountKey={PRIMARY_KEY};") as client:
        assert isinstance(list(client.list_databases()), list)


def test_the_secondary_key_may_do_everything(endpoint):
    with CosmosClient(endpoint, SECONDARY_KEY) as client:
        name = fresh("db")
        client.create_database(name)
        client.delete_database(name)


def test_the_read_only_key_reads_and_writes_nothing(endpoint, database, container):
    container.upsert_item({"id": "1", "pk": "a"})
    with CosmosClient(endpoint, READ_ONLY_KEY) as client:
        reader = client.get_database_client(database.id).get_container_client(container.id)
        assert reader.read_item("1", "a")["id"] == "1"
        assert [item["id"] for item in reader.read_all_items()] == ["1"]
        acts = [
            lambda: client.create_database(fresh("db")),
            lambda: client.delete_database(database.id),
            lambda: reader.create_item({"id": "2", "pk": "a"}),
            lambda: reader.delete_item("1", "a"),
        ]
        for act in acts:
            with refused(401, "(Unauthorized)"):
                act()
    assert container.read_item("1", "a")["id"] == "1"


@pytest.mark.parametrize("key", ["AAAA", PRIMARY_KEY.replace("C2y6", "C2y7")], ids=["short", "one bit off"])
def test_another_key_is_unauthorized(endpoint, key):
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        CosmosClient(endpoint, key)
    assert caught.value.status_code == 401
    assert "(Unauthorized)" in caught.value.message


@pytest.mark.parametrize("level", ["Session", "ConsistentPrefix", "Eventual"])
def test_a_client_may_ask_for_weaker_consistency(endpoint, database, container, level):
    with CosmosClient(endpoint, PRIMARY_KEY, consistency_level=level) as client:
        weaker = client.get_database_client(database.id).get_container_client(container.id)
        weaker.upsert_item({"id": "1", "pk": "a"})
        assert weaker.read_item("1", "a")["id"] == "1"


@pytest.mark.parametrize("level", ["Strong", "BoundedStaleness"])
def test_a_client_may_not_ask_for_stronger_consistency(endpoint, database, container, level):
    with CosmosClient(endpoint, PRIMARY_KEY, consistency_level=level) as client:
        stronger = client.get_database_client(database.id).get_container_client(container.id)
        container.upsert_item({"id": "1", "pk": "a"})
        with refused(400):
            stronger.read_item("1", "a")
