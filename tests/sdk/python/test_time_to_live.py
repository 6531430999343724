"""Time to live: what is accepted, and what expires when."""

import time

import pytest
from azure.cosmos import PartitionKey

from support import fresh, ids, refused

# Long enough that what is written is still there when it is looked at, also on a machine that does much else.
SHORT = 10
# The end of a test that hangs.
DEADLINE_SECONDS = 300


def wait_until_gone(container, *names):
    deadline = time.monotonic() + DEADLINE_SECONDS
    while remaining := [name for name in ids(container.read_all_items()) if name in names]:
        assert time.monotonic() < deadline, f"still there: {remaining}"
        time.sleep(0.1)


@pytest.mark.parametrize("ttl", [0, -2, 1.5, "10", None, True, 2147483648], ids=repr)
def test_a_bad_time_to_live_of_an_item_is_refused(make_container, ttl):
    container = make_container(default_ttl=-1)
    with refused(400):
        container.create_item({"id": "1", "pk": "a", "ttl": ttl})
    assert list(container.read_all_items()) == []


@pytest.mark.parametrize("ttl", [-1, 1000, 2147483647])
def test_a_good_time_to_live_of_an_item_is_kept(make_container, ttl):
    container = make_container(default_ttl=-1)
    container.create_item({"id": "1", "pk": "a", "ttl": ttl})
    assert container.read_item("1", "a")["ttl"] == ttl


def test_what_expires_and_what_stays(database):
    """All cases wait together."""
    own = database.create_container(fresh("own"), PartitionKey("/pk"), default_ttl=-1)
    default = database.create_container(fresh("default"), PartitionKey("/pk"), default_ttl=SHORT)
    off = database.create_container(fresh("off"), PartitionKey("/pk"))

    for container in (own, default, off):
        container.create_item({"id": "plain", "pk": "a"})
        container.create_item({"id": "short", "pk": "a", "ttl": SHORT})
        container.create_item({"id": "never", "pk": "a", "ttl": -1})
        container.create_item({"id": "long", "pk": "a", "ttl": 1000})
        assert ids(container.read_all_items()) == ["plain", "short", "never", "long"]

    wait_until_gone(own, "short")
    wait_until_gone(default, "plain", "short")
    assert ids(own.read_all_items()) == ["plain", "never", "long"]
    assert ids(default.read_all_items()) == ["never", "long"]
    assert ids(off.read_all_items()) == ["plain", "short", "never", "long"]

    # An expired item is gone for every operation, and its id is free.
    with refused(404):
        own.read_item("short", "a")
    with refused(404):
        own.replace_item("short", {"id": "short", "pk": "a"})
    with refused(404):
        own.delete_item("short", "a")
    assert own.create_item({"id": "short", "pk": "a"})["id"] == "short"

    # A new default applies to what is there already: the age counts from the last write.
    database.replace_container(off, PartitionKey("/pk"), default_ttl=-1)
    wait_until_gone(off, "short")
    assert ids(off.read_all_items()) == ["plain", "never", "long"]
    database.replace_container(own, PartitionKey("/pk"), default_ttl=1)
    wait_until_gone(own, "plain", "short")
    assert ids(own.read_all_items()) == ["never", "long"]


def test_a_write_gives_an_item_a_new_life(make_container):
    container = make_container(default_ttl=SHORT)
    container.create_item({"id": "touched", "pk": "a"})
    container.create_item({"id": "left", "pk": "a"})
    until = time.monotonic() + DEADLINE_SECONDS
    while "left" in ids(container.read_all_items()):
        assert time.monotonic() < until
        container.upsert_item({"id": "touched", "pk": "a"})
        time.sleep(0.2)
    assert ids(container.read_all_items()) == ["touched"]
