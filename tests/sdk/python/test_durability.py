"""What was acknowledged is there after the server was killed, and a client that was connected goes on."""

import threading

import pytest
from azure.core.exceptions import AzureError
from azure.cosmos import CosmosClient, PartitionKey, ThroughputProperties

from server import PRIMARY_KEY, Server
from support import content, ids, refused, script_text


@pytest.fixture(params=["http", "https"])
def killable(request, tmp_path):
    """A server with a folder, and a client of it."""
    server = Server(tmp_path / "data")
    with CosmosClient(server.endpoint(request.param), PRIMARY_KEY) as client:
        yield server, client
    server.stop()


def restart(server):
    server.kill()
    server.start()


def test_everything_survives_a_kill(killable):
    server, client = killable
    database = client.create_database("d", offer_throughput=600)
    container = database.create_container(
        "c", PartitionKey("/pk"), offer_throughput=ThroughputProperties(auto_scale_max_throughput=2000), default_ttl=-1
    )
    tree = database.create_container("tree", PartitionKey(["/a", "/b"]))
    items = [container.create_item({"id": str(number), "pk": number % 3, "text": "ü" * number}) for number in range(50)]
    items[1] = container.upsert_item({**content(items[1]), "changed": True})
    container.delete_item("0", 0)
    tree.create_item({"id": "1", "a": None, "b": True})
    user = database.create_user({"id": "u"})
    permission = user.create_permission({"id": "p", "permissionMode": "All", "resource": container.container_link})
    container.scripts.create_user_defined_function({"id": "f", "body": "function () {}"})
    before = [
        dict(client.get_database_client("d").read()),
        dict(container.read()),
        dict(tree.read()),
        dict(user.read()),
    ]
    pages = container.read_all_items(max_item_count=7).by_page()
    head = ids(next(pages))

    restart(server)

    assert [dict(database.read()), dict(container.read()), dict(tree.read()), dict(user.read())] == before
    assert [dict(item) for item in container.read_all_items()] == [dict(item) for item in items[1:]]
    with refused(404):
        container.read_item("0", 0)
    assert dict(container.read_item("7", 1)) == dict(items[7])
    assert tree.read_item("1", [None, True])["id"] == "1"
    assert database.get_throughput().offer_throughput == 600
    assert container.get_throughput().auto_scale_max_throughput == 2000
    assert user.get_permission("p").properties["_rid"] == permission.properties["_rid"]
    assert ids(container.scripts.list_user_defined_functions()) == ["f"]
    # A continuation token and a resource token of before are good.
    rest = container.read_all_items(max_item_count=7).by_page(pages.continuation_token)
    assert head + [item["id"] for page in rest for item in page] == [item["id"] for item in items[1:]]
    with CosmosClient(
        client.client_connection.url_connection, {container.container_link: permission.properties["_token"]}
    ) as holder:
        assert holder.get_database_client("d").get_container_client("c").read_item("7", 1)["id"] == "7"
    # Sequences go on: nothing that was given out is given again.
    later = container.create_item({"id": "0", "pk": 0})
    assert later["_rid"] not in [item["_rid"] for item in items]
    assert later["_etag"] not in [item["_etag"] for item in items]
    assert ids(container.read_all_items())[-1] == "0"


def test_a_session_goes_forward_over_a_kill(killable):
    server, client = killable
    container = client.create_database("d").create_container("c", PartitionKey("/pk"))
    lsn = lambda item: int(item.get_response_headers()["lsn"])
    first = container.create_item({"id": "1", "pk": "a"})
    restart(server)
    assert lsn(container.read_item("1", "a")) >= lsn(first)
    assert lsn(container.create_item({"id": "2", "pk": "a"})) > lsn(first)


def test_a_kill_in_the_middle_of_writes_loses_nothing_acknowledged(killable):
    server, client = killable
    container = client.create_database("d").create_container("c", PartitionKey("/pk"))
    acknowledged, stop = [], threading.Event()

    def write(writer):
        for number in range(100_000):
            try:
                container.upsert_item({"id": f"{writer}-{number}", "pk": writer}, retry_write=0)
            except AzureError:
                return
            acknowledged.append(f"{writer}-{number}")
            if stop.is_set():
                return

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    [thread.start() for thread in threads]
    while len(acknowledged) < 100:
        assert any(thread.is_alive() for thread in threads)
    server.kill()
    stop.set()
    server.start()
    [thread.join() for thread in threads]
    assert len(acknowledged) >= 100
    assert set(acknowledged) <= set(ids(container.read_all_items(max_item_count=1000)))


def test_a_kill_in_the_middle_of_procedures_leaves_none_half_done(killable):
    server, client = killable
    container = client.create_database("d").create_container("c", PartitionKey("/pk"))
    container.scripts.create_stored_procedure({"id": "insert", "body": script_text("insert_book")})
    for author in ("a", "b"):
        container.create_item({"id": author, "pk": "library", "countOfBooks": 0})
    acknowledged = []

    def insert(writer):
        for number in range(100_000):
            book = {"id": f"{writer}-{number}", "pk": "library", "authors": [{"id": "a"}, {"id": "b"}]}
            try:
                container.scripts.execute_stored_procedure("insert", "library", [book])
            except AzureError:
                return
            acknowledged.append(book["id"])

    threads = [threading.Thread(target=insert, args=(writer,)) for writer in range(4)]
    [thread.start() for thread in threads]
    while len(acknowledged) < 50:
        assert any(thread.is_alive() for thread in threads)
    server.kill()
    [thread.join() for thread in threads]
    server.start()
    books = ids(container.query_items("SELECT c.id FROM c WHERE IS_DEFINED(c.authors)", partition_key="library"))
    assert set(acknowledged) <= set(books)
    assert [container.read_item(author, "library")["countOfBooks"] for author in ("a", "b")] == [len(books)] * 2


def test_a_deleted_container_stays_deleted(killable):
    server, client = killable
    database = client.create_database("d")
    database.create_container("c", PartitionKey("/pk")).create_item({"id": "1", "pk": "a"})
    rid = database.get_container_client("c").read()["_rid"]
    database.delete_container("c")
    restart(server)
    with refused(404):
        database.get_container_client("c").read()
    assert list(database.list_containers()) == []
    again = database.create_container("c", PartitionKey("/pk"))
    assert again.read()["_rid"] != rid
    # The client still has a session of the old container, of which the server knows nothing after its restart.
    again.create_item({"id": "2", "pk": "a"})
    assert ids(again.read_all_items()) == ["2"]
