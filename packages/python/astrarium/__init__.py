"""Astrarium servers for tests and tools: started in milliseconds on a free port, gone without a trace.

>>> import astrarium                                      # doctest: +SKIP
>>> with astrarium.start() as server:                     # doctest: +SKIP
...     client = CosmosClient(server.endpoint, server.key)
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path

__all__ = ["KEY", "Server", "StartError", "binary", "start"]

#: The key that the service's emulator has, and a server that is told no other.
KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

_ENDPOINT = re.compile(r"AccountEndpoint=([^;]+);")


class StartError(RuntimeError):
    """The server did not start; says what it complained about."""


class Server:
    """A running server, which ends with :meth:`stop`, at the end of a ``with`` block, or with this process, however that ends."""

    def __init__(self, process: subprocess.Popen, endpoint: str, key: str, log: list[str]) -> None:
        self._process = process
        self._log = log
        #: What an SDK connects to, over plain HTTP.
        self.endpoint = endpoint
        #: The account key.
        self.key = key

    @property
    def connection_string(self) -> str:
        """Endpoint and key in one text."""
        return f"AccountEndpoint={self.endpoint};AccountKey={self.key};"

    @property
    def log(self) -> str:
        """What the server has logged so far."""
        return "".join(self._log)

    def stop(self, seconds: float = 10) -> None:
        """Ends the server in good order; kills it if that takes too long."""
        if self._process.stdin and not self._process.stdin.closed:
            self._process.stdin.close()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def binary() -> str:
    """Where the program is: what ASTRARIUM_BIN says, the one that was installed with this module, or the one on the path."""
    given = os.environ.get("ASTRARIUM_BIN")
    if given:
        return given
    scripts = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable)]
    user = sysconfig.get_preferred_scheme("user")
    scripts.append(sysconfig.get_path("scripts", user))
    # An installation with --target puts the command beside the module.
    scripts.append(str(Path(__file__).resolve().parent.parent / "bin"))
    for folder in scripts:
        found = Path(folder) / "astrarium"
        if found.is_file() and os.access(found, os.X_OK):
            return str(found)
    found_on_path = shutil.which("astrarium")
    if found_on_path is None:
        raise StartError("the program astrarium is not installed beside this module; set ASTRARIUM_BIN to where it is")
    return found_on_path


def start(*arguments: str, data: str | os.PathLike[str] | None = None, key: str = KEY, seconds: float = 30) -> Server:
    """Starts a server on a free port of this machine, and waits until it is ready.

    Nothing is kept unless ``data`` names a folder. Further arguments are those of ``astrarium serve``. Fails with :class:`StartError`,
    which has what the server said, if it ends or is not ready in time.
    """
    storage = ["--memory"] if data is None else ["--data", os.fspath(data)]
    command = [binary(), "serve", "--listen", "127.0.0.1:0", "--until-stdin-closes", *storage, *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASTRARIUM_")}
    environment["ASTRARIUM_KEY"] = key
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment)
    log: list[str] = []
    complaints = threading.Thread(target=_collect, args=(process.stderr, log), daemon=True)
    complaints.start()
    late = threading.Timer(seconds, process.kill)
    late.daemon = True
    late.start()
    line = process.stdout.readline()
    late.cancel()
    found = _ENDPOINT.search(line)
    if found is None:
        process.kill()
        process.wait()
        complaints.join(seconds)
        raise StartError(f"astrarium did not start: {''.join(log).strip() or line.strip() or 'it ended without a word'}")
    threading.Thread(target=_collect, args=(process.stdout, []), daemon=True).start()
    return Server(process, found.group(1), key, log)


def _collect(stream, lines: list[str]) -> None:
    """Reads a stream to its end: a pipe that nobody reads would stop the server. Keeps the last lines."""
    for line in stream:
        lines.append(line)
        del lines[:-1000]
