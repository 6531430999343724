"""Starts, kills and restarts the server under test.

One `Server` is one process on a port of its own and, unless it keeps everything in memory or has other settings, one folder. The
program is `ASTRARIUM_BIN`, or the release build of this repository.
"""

import os
import pathlib
import socket
import subprocess
import time
import urllib.request

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = pathlib.Path(os.environ.get("ASTRARIUM_BIN", REPOSITORY / "target/release/astrarium"))

# Made for these tests and known to everybody who reads them.
PRIMARY_KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
SECONDARY_KEY = "c2Vjb25kYXJ5LWtleS1vZi10aGUtZW5kLXRvLWVuZC10ZXN0cw=="
READ_ONLY_KEY = "cmVhZC1vbmx5LWtleS1vZi10aGUtZW5kLXRvLWVuZC10ZXN0cy4="

READY_SECONDS_MAX = 300


class Server:
    """A running server; `kill` and `start` again keep the port and the folder."""

    def __init__(self, data: pathlib.Path | None = None, settings: list[str] | None = None, port: int | None = None):
        self.port = port or free_port()
        self.storage = settings or (["--memory"] if data is None else ["--data", str(data)])
        self.process: subprocess.Popen | None = None
        self.start()

    def endpoint(self, scheme: str) -> str:
        return f"{scheme}://127.0.0.1:{self.port}/"

    def start(self) -> None:
        keys = ["--key", PRIMARY_KEY, "--secondary-key", SECONDARY_KEY, "--read-only-key", READ_ONLY_KEY]
        listen = ["--listen", f"127.0.0.1:{self.port}"]
        self.process = subprocess.Popen(
            [str(PROGRAM), "serve", *listen, *keys, *self.storage], stdout=subprocess.DEVNULL
        )
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS_MAX
        while True:
            try:
                with urllib.request.urlopen(self.endpoint("http") + "ready", timeout=60) as answer:
                    assert answer.status == 200
                    return
            except OSError:
                assert self.process.poll() is None, f"the server ended with code {self.process.returncode}"
                assert time.monotonic() < deadline, "the server was not ready in time"
                time.sleep(0.02)

    def kill(self) -> None:
        """SIGKILL: the process gets no chance to write anything more."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """SIGTERM, as an operator would."""
        self.process.terminate()
        try:
            self.process.wait(timeout=300)
        except subprocess.TimeoutExpired:
            self.kill()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
