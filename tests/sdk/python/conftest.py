"""One server for the whole run; every test runs once over http and once over https."""

import shlex
import signal

import pytest
from azure.cosmos import CosmosClient, PartitionKey

import server as under_test
from support import fresh


@pytest.fixture(scope="session")
def server():
    # Ended from outside, the tests still stop what they started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    running = under_test.Server()
    yield running
    running.stop()


@pytest.fixture(scope="session", params=["http", "https"])
def endpoint(request, server):
    return server.endpoint(request.param)


@pytest.fixture(scope="session")
def client(endpoint):
    with CosmosClient(endpoint, under_test.PRIMARY_KEY) as connected:
        yield connected


@pytest.fixture(scope="session")
def connection(client):
    """The layer of the SDK that sends any definition, also such as its own methods have no argument for."""
    return client.client_connection


@pytest.fixture(scope="module")
def database(client):
    created = client.create_database(fresh("database"))
    yield created
    client.delete_database(created)


@pytest.fixture(scope="module")
def container(database):
    """A container with the partition key /pk that the tests of a file share; they use different ids and keys."""
    return database.create_container(fresh("container"), PartitionKey("/pk"))


@pytest.fixture
def make_container(database):
    """Makes containers of a test's own."""

    def make(path="/pk", **options):
        key = path if isinstance(path, dict) else PartitionKey(path)
        return database.create_container(fresh("container"), key, **options)

    return make


def pytest_terminal_summary(terminalreporter):
    """The commands that run again what failed, as `cargo xtask test` says them at its end."""
    ended = terminalreporter.stats.get("failed", []) + terminalreporter.stats.get("error", [])
    for name in dict.fromkeys(report.nodeid for report in ended):
        terminalreporter.write_line(f"failed: tests/sdk/python/run {shlex.quote(name)}")
