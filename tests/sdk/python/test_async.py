"""The asynchronous client: the life of every resource, and many operations at once."""

import asyncio

import pytest
from azure.core import MatchConditions
from azure.cosmos import PartitionKey, exceptions
from azure.cosmos.aio import CosmosClient

from server import PRIMARY_KEY
from support import content, fresh


def run(endpoint, act):
    """Runs `act` with a new database, which is deleted afterwards."""

    async def with_client():
        async with CosmosClient(endpoint, PRIMARY_KEY) as client:
            database = await client.create_database(fresh("async"))
            await act(client, database)
            await client.delete_database(database)

    asyncio.run(with_client())


async def names(pages):
    return [resource["id"] async for resource in pages]


def test_the_life_of_an_item(endpoint):
    async def act(_client, database):
        container = await database.create_container("c", PartitionKey("/pk"))
        body = {"id": "1", "pk": "a", "value": 1}
        created = await container.create_item(body)
        assert content(created) == body
        assert dict(await container.read_item("1", "a")) == dict(created)
        replaced = await container.replace_item("1", {**body, "value": 2})
        unless = {"etag": created["_etag"], "match_condition": MatchConditions.IfNotModified}
        with pytest.raises(exceptions.CosmosAccessConditionFailedError):
            await container.upsert_item(body, **unless)
        unchanged = {"etag": replaced["_etag"], "match_condition": MatchConditions.IfModified}
        assert dict(await container.read_item("1", "a", **unchanged)) == {}
        with pytest.raises(exceptions.CosmosResourceExistsError):
            await container.create_item(body)
        await container.delete_item("1", "a")
        with pytest.raises(exceptions.CosmosResourceNotFoundError):
            await container.read_item("1", "a")

    run(endpoint, act)


def test_many_items_at_once(endpoint):
    async def act(_client, database):
        container = await database.create_container("c", PartitionKey("/pk"))
        bodies = [{"id": f"{number:03}", "pk": number % 7} for number in range(100)]
        created = await asyncio.gather(*(container.create_item(body) for body in bodies))
        assert len({item["_rid"] for item in created}) == len({item["_etag"] for item in created}) == 100
        read = await asyncio.gather(*(container.read_item(body["id"], body["pk"]) for body in bodies))
        assert [content(item) for item in read] == bodies
        assert sorted(await names(container.read_all_items(max_item_count=9))) == [body["id"] for body in bodies]
        await asyncio.gather(*(container.delete_item(body["id"], body["pk"]) for body in bodies))
        assert await names(container.read_all_items()) == []

    run(endpoint, act)


def test_the_life_of_everything_else(endpoint):
    async def act(client, database):
        assert database.id in await names(client.list_databases())
        same = await client.create_database_if_not_exists(database.id)
        assert (await same.read())["_rid"] == (await database.read())["_rid"]
        container = await database.create_container("c", PartitionKey(["/a", "/b"]), default_ttl=60)
        assert (await container.read())["defaultTtl"] == 60
        assert await names(database.list_containers()) == ["c"]
        await container.create_item({"id": "1", "a": "x", "b": 1})
        await container.delete_all_items_by_partition_key(["x", 1])
        assert await names(container.read_all_items()) == []
        assert (await container.get_throughput()).offer_throughput == 400
        assert (await container.replace_throughput(500)).offer_throughput == 500
        ranges = [one async for one in container.read_feed_ranges()]
        assert len(ranges) == 1
        user = await database.create_user({"id": "u"})
        permission = await user.create_permission(
            {"id": "p", "permissionMode": "Read", "resource": container.container_link}
        )
        async with CosmosClient(endpoint, {container.container_link: permission.properties["_token"]}) as reader:
            allowed = reader.get_database_client(database.id).get_container_client("c")
            assert (await allowed.read())["id"] == "c"
            with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
                await allowed.create_item({"id": "2", "a": "x", "b": 1})
            assert caught.value.status_code == 403
        await database.delete_container("c")
        with pytest.raises(exceptions.CosmosResourceNotFoundError):
            await container.read()

    run(endpoint, act)
