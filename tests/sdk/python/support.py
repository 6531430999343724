"""Short words for what the tests say again and again."""

import contextlib
import itertools
import pathlib
import re
import threading
import uuid

import pytest
from azure.cosmos import exceptions

SYSTEM_PROPERTIES = ("_rid", "_self", "_etag", "_ts", "_attachments")
GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

SCRIPTS = pathlib.Path(__file__).resolve().parents[1] / "cases/scripts"

_numbers = itertools.count(1)


def fresh(prefix: str) -> str:
    """A name that no other test has."""
    return f"{prefix}-{next(_numbers)}-{uuid.uuid4().hex[:8]}"


@contextlib.contextmanager
def refused(status: int, *fragments: str, substatus: int = 0):
    """The block ends in an error of the service with this status, substatus and these pieces of text."""
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        yield caught
    check_error(caught.value, status, *fragments, substatus=substatus)


def check_error(error, status: int, *fragments: str, substatus: int = 0) -> None:
    assert error.status_code == status, error.message
    assert (error.sub_status or 0) == substatus, error.message
    for fragment in fragments:
        assert fragment in error.message
    if error.response is not None:
        headers = error.response.headers
        assert GUID.fullmatch(headers["x-ms-activity-id"])
        assert float(headers["x-ms-request-charge"]) >= 0
        assert headers["content-type"].startswith("application/json")
        assert int(headers["content-length"]) > 0


def content(resource) -> dict:
    """An item without the properties that the server adds."""
    return {name: value for name, value in resource.items() if name not in SYSTEM_PROPERTIES}


def ids(resources) -> list[str]:
    return [resource["id"] for resource in resources]


class Hook:
    """A response hook that keeps the headers of every response."""

    def __init__(self):
        self.responses = []

    def __call__(self, headers, _body=None):
        self.responses.append(headers)

    @property
    def headers(self):
        return self.responses[-1]


def script_text(name: str) -> str:
    """One of the scripts that the suites of all languages share."""
    return (SCRIPTS / f"{name}.js").read_text()


class Procedures:
    """Stored procedures of a container, made when they are first used."""

    def __init__(self, container):
        self.scripts = container.scripts
        self.known = {}

    def name(self, body: str) -> str:
        if body not in self.known:
            self.known[body] = fresh("procedure")
            self.scripts.create_stored_procedure({"id": self.known[body], "body": body})
        return self.known[body]

    def run(self, body: str, key, *parameters, **options):
        """Executes a procedure in the partition of a key."""
        return self.scripts.execute_stored_procedure(self.name(body), key, list(parameters), **options)


def at_once(*acts) -> list:
    """Runs the acts in threads that start together; gives their results, or raises the first of their errors."""
    start, results, errors = threading.Barrier(len(acts)), [None] * len(acts), []

    def run(number, act):
        start.wait()
        try:
            results[number] = act()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results
