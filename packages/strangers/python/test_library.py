"""A project of somebody who installed the wheel: the fixture, the module and the command, with the official SDK."""

import os
import subprocess
import sys
import time

import astrarium
import pytest
from azure.cosmos import CosmosClient, PartitionKey


def library(server):
    client = CosmosClient(server.endpoint, server.key)
    database = client.create_database_if_not_exists("library")
    return database.create_container_if_not_exists("books", PartitionKey("/author"))


def test_fixture(astrarium_server):
    books = library(astrarium_server)
    books.upsert_item({"id": "1", "author": "Lem", "title": "Solaris"})
    found = books.query_items("SELECT VALUE c.title FROM c", partition_key="Lem")
    assert list(found) == ["Solaris"]


def test_fresh_fixture_is_empty(astrarium_server, astrarium_fresh_server):
    assert astrarium_fresh_server.endpoint != astrarium_server.endpoint
    client = CosmosClient(astrarium_fresh_server.endpoint, astrarium_fresh_server.key)
    assert list(client.list_databases()) == []


def test_stop_ends_a_server():
    # How soon one is ready is shown, and judged by the benches only: it depends on what else the machine does.
    times = []
    for _ in range(5):
        began = time.monotonic()
        server = astrarium.start()
        times.append((time.monotonic() - began) * 1000)
        server.stop()
        with pytest.raises(OSError):
            __import__("urllib.request").request.urlopen(server.endpoint, timeout=5)
    print(f"python: a server in {min(times):.0f} ms, the slowest of 5 in {max(times):.0f} ms")


def test_data_is_kept_in_a_folder(tmp_path):
    with astrarium.start(data=tmp_path / "data") as server:
        library(server).upsert_item({"id": "1", "author": "Lem"})
    with astrarium.start(data=tmp_path / "data") as server:
        assert library(server).read_item("1", "Lem")["author"] == "Lem"


def test_refusals_are_told():
    with pytest.raises(astrarium.StartError, match="--consistency"):
        astrarium.start("--consistency", "whatever")


def test_a_killed_parent_leaves_no_server(tmp_path):
    code = "import astrarium, os, sys; s = astrarium.start(); print(s._process.pid, flush=True); sys.stdin.read()"
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    server = int(parent.stdout.readline())
    os.kill(server, 0)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 300
    while os.path.exists(f"/proc/{server}") and time.monotonic() < deadline:
        with open(f"/proc/{server}/stat") as stat:
            if stat.read().rsplit(")", 1)[1].split()[0] == "Z":
                return
        time.sleep(0.02)
    assert not os.path.exists(f"/proc/{server}"), "the server outlived whoever started it"


def test_the_command():
    shown = subprocess.run(["astrarium", "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("astrarium ")
    assert os.path.dirname(astrarium.binary()) == os.path.dirname(sys.executable)
