"""A PostgreSQL in a temporary folder, for tests of several servers over one store.

The programs are those in `ASTRARIUM_POSTGRES_BIN`, in `PATH`, or the newest of Debian's. Root lends it the user `postgres`, or `nobody`.
"""

import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile

from server import free_port


def programs() -> pathlib.Path | None:
    """The folder with PostgreSQL's programs, if there is one."""
    on_path = shutil.which("initdb")
    named = os.environ.get("ASTRARIUM_POSTGRES_BIN")
    debian = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: -int(folder.parent.name))
    folders = [pathlib.Path(named)] if named else [*([pathlib.Path(on_path).parent] if on_path else []), *debian]
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


class Postgres:
    """A running PostgreSQL that asks for no password; gone with its data when it is stopped."""

    def __init__(self, folder: pathlib.Path):
        self.programs = folder
        self.user = self.lent_user()
        self.data = pathlib.Path(tempfile.mkdtemp(prefix="astrarium-postgres-"))
        if self.user:
            account = pwd.getpwnam(self.user)
            os.chown(self.data, account.pw_uid, account.pw_gid)
        self.port = free_port()
        self.run("initdb", "--no-sync", "--auth=trust", "--username=postgres", "--pgdata", self.data)
        settings = f"-p {self.port} -c fsync=off -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=200"
        self.run("pg_ctl", "--wait", "--log", self.data / "log", "-o", settings, "--pgdata", self.data, "start")

    @staticmethod
    def lent_user() -> str | None:
        if os.getuid() != 0:
            return None
        known = {account.pw_name for account in pwd.getpwall()}
        return "postgres" if "postgres" in known else "nobody"

    def run(self, program: str, *arguments) -> None:
        command = [str(self.programs / program), *map(str, arguments)]
        options = {"user": self.user, "group": pwd.getpwnam(self.user).pw_gid} if self.user else {}
        subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL, **options)

    @property
    def url(self) -> str:
        return f"postgres://postgres@127.0.0.1:{self.port}/postgres"

    def stop(self) -> None:
        self.run("pg_ctl", "--wait", "--mode", "immediate", "--pgdata", self.data, "stop")
        shutil.rmtree(self.data)
