"""Three servers over one PostgreSQL are one account: their names are regions, and what a client does goes on when one is killed."""

import itertools
import json
import socket
import subprocess
import threading
import time
import urllib.request

import pytest
from azure.cosmos import CosmosClient, PartitionKey

import postgres
import server as under_test
from support import fresh, ids

NAMES = ["West", "East", "North"]
KNOWN_SECONDS_MAX = 300


@pytest.fixture(scope="module")
def database_server():
    programs = postgres.programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    running = postgres.Postgres(programs)
    yield running
    running.stop()


@pytest.fixture
def store(database_server):
    """An empty store."""
    url = f"{database_server.url}?schema={fresh('s').replace('-', '_')}"
    subprocess.run([str(under_test.PROGRAM), "store", "init", url], check=True, stdout=subprocess.DEVNULL)
    return url


@pytest.fixture
def servers(store):
    """Servers that were started by `start(name, *settings)`; stopped when the test ends."""
    running = {}

    def start(name, *settings, port=None):
        running[name] = under_test.Server(settings=["--store", store, "--server-name", name, *settings], port=port)
        return running[name]

    start.running = running
    yield start
    for one in running.values():
        one.stop()


def wait_until_known(one: under_test.Server, count: int) -> None:
    """Until a server knows so many of them, itself included: by their heartbeats, one a second."""
    deadline = time.monotonic() + KNOWN_SECONDS_MAX
    while f"astrarium_servers_alive {count}.0" not in metrics(one):
        assert time.monotonic() < deadline, f"{count} servers are not known in time"
        time.sleep(0.1)


def metrics(one: under_test.Server) -> str:
    with urllib.request.urlopen(one.endpoint("http") + "metrics", timeout=5) as answer:
        return answer.read().decode()


def test_servers_are_regions(servers):
    for name in NAMES:
        servers(name)
    for one in servers.running.values():
        wait_until_known(one, 3)
    west = servers.running["West"].endpoint("http")
    with CosmosClient(west, under_test.PRIMARY_KEY) as client:
        account = client.get_database_account()
    expected = {name: one.endpoint("http") for name, one in servers.running.items()}
    writable = {location["name"]: location["databaseAccountEndpoint"] for location in account.WritableLocations}
    assert writable == expected
    assert list(writable)[0] == "West"
    assert account._EnableMultipleWritableLocations


@pytest.mark.parametrize("killed", ["East", "West"])
def test_reads_and_writes_go_on_when_a_server_is_killed(servers, killed):
    """Also when it is the one that the client was given."""
    for name in NAMES:
        servers(name)
    for one in servers.running.values():
        wait_until_known(one, 3)
    preferred = [killed, *(name for name in NAMES if name != killed)]
    options = {"preferred_locations": preferred, "multiple_write_locations": True}
    with CosmosClient(servers.running["West"].endpoint("http"), under_test.PRIMARY_KEY, **options) as client:
        database = client.create_database(fresh("database"))
        container = database.create_container(fresh("container"), PartitionKey("/pk"))
        for number in range(30):
            container.create_item({"id": f"before-{number}", "pk": "a"})
        connection = client.client_connection
        assert connection.WriteEndpoint == servers.running[killed].endpoint("http")
        servers.running[killed].kill()
        for number in range(30):
            created = container.create_item({"id": f"after-{number}", "pk": "a"})
            assert container.read_item(created["id"], "a")["_etag"] == created["_etag"]
            assert created["id"] in ids(container.query_items("SELECT * FROM c", partition_key="a"))
        assert connection.WriteEndpoint != servers.running[killed].endpoint("http")
        assert list(container.query_items("SELECT VALUE COUNT(1) FROM c", partition_key="a")) == [60]


class Balancer:
    """Passes each connection on to the next server that takes it, as a plain TCP balancer does."""

    def __init__(self):
        self.targets = []
        self.turns = itertools.count()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self.listener.getsockname()[1]}/"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            first = next(self.turns)
            for offset in range(len(self.targets)):
                try:
                    target = self.targets[(first + offset) % len(self.targets)]
                    upstream = socket.create_connection(("127.0.0.1", target.port), timeout=5)
                    break
                except OSError:
                    continue
            else:
                client.close()
                continue
            upstream.settimeout(None)
            for source, sink in ((client, upstream), (upstream, client)):
                threading.Thread(target=self.copy, args=(source, sink), daemon=True).start()

    @staticmethod
    def copy(source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        for one in (source, sink):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self) -> None:
        self.listener.close()


def test_a_session_holds_behind_a_balancer(servers):
    balancer = Balancer()
    for name in NAMES:
        balancer.targets.append(servers(name, "--public-endpoint", balancer.endpoint))
    for one in servers.running.values():
        wait_until_known(one, 3)
    with CosmosClient(balancer.endpoint, under_test.PRIMARY_KEY) as client:
        account = client.get_database_account()
        assert [location["databaseAccountEndpoint"] for location in account.WritableLocations] == [balancer.endpoint]
        container = client.create_database(fresh("database")).create_container(fresh("container"), PartitionKey("/pk"))
        for number in range(60):
            if number == 30:
                servers.running["East"].kill()
            container.create_item({"id": str(number), "pk": number % 7})
            # A client of its own is a connection of its own, and so most likely another server.
            token = client.client_connection.last_response_headers["x-ms-session-token"]
            with CosmosClient(balancer.endpoint, under_test.PRIMARY_KEY) as other:
                reader = other.get_database_client(container.container_link.split("/")[1]).get_container_client(container.id)
                assert reader.read_item(str(number), number % 7, session_token=token)["id"] == str(number)
        assert len(list(container.read_all_items())) == 60
    shares = [one for one in servers.running.values() if one.process.poll() is None]
    for one in shares:
        created = [line for line in metrics(one).splitlines() if line.startswith('astrarium_requests_total{resource="docs"')]
        assert any(not line.endswith(" 0") for line in created), json.dumps(created)
    balancer.close()
