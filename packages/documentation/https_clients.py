"""Runs each row of the README's table of HTTPS clients: `https_clients.py --root R --binary B --work W [--node N] [--go] [--rust T]`.

Every row is done twice as it stands there: with the server's authority in `astrarium.pem`, when the client has to get through, and with the
authority of another server in that file, when it has to be refused because of the certificate. So a client that verifies nothing fails
the test. What the README says of names on which the Python SDK verifies nothing is checked too.

The row of Java needs what the blocks of the README have left in their folder (`blocks.py`, which runs before). .NET is not run.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Callable, Optional

import astrarium
import blocks

SECONDS_MAX = 300
#: What clients say of a certificate that they do not trust; curl speaks of asn1, since both authorities have the same name.
REFUSAL = re.compile(r"certificate|PKIX|CERT_|asn1", re.IGNORECASE)
LOCAL, OTHER = "https://127.0.0.1", "https://127.0.0.2"
NOT_RUN = (".NET on Linux", ".NET elsewhere")

PYTHON = """\
from azure.cosmos import CosmosClient, documents
key = "{key}"
client = {expression}
print(list(client.list_databases()))
"""

PYTHON_ASYNC = """\
import asyncio
from azure.cosmos.aio import CosmosClient

async def main():
    async with CosmosClient("{endpoint}", "{key}") as client:
        print([database async for database in client.list_databases()])

asyncio.run(main())
"""

NODE = """\
const { CosmosClient } = require("@azure/cosmos");
const client = new CosmosClient({ endpoint: "%s", key: "%s" });
client.databases.readAll().fetchAll().then(({ resources }) => { console.log(resources); process.exit(0); }, (error) => { console.error(error); process.exit(1); });
"""

GO = """\
package main

import (
	"context"
	"log"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func main() {
	account := "AccountEndpoint=" + os.Getenv("ENDPOINT") + ";AccountKey=" + os.Getenv("KEY") + ";"
	once := azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}
	client, err := azcosmos.NewClientFromConnectionString(account, &azcosmos.ClientOptions{ClientOptions: once})
	if err != nil {
		log.Fatal(err)
	}
	pages := client.NewQueryDatabasesPager("SELECT * FROM c", nil)
	if _, err := pages.NextPage(context.Background()); err != nil {
		log.Fatal(err)
	}
}
"""

RUST = """\
use azure_data_cosmos::options::Region;
use azure_data_cosmos::{AccountReference, CosmosClient, RoutingStrategy};
use futures::TryStreamExt as _;

async fn databases() -> Result<(), Box<dyn std::error::Error>> {
    let account = AccountReference::with_authentication_key(std::env::var("ENDPOINT")?.parse()?, std::env::var("KEY")?);
    let client = CosmosClient::builder().build(account, RoutingStrategy::ProximityTo(Region::EAST_US)).await?;
    let _: Vec<_> = client.query_databases("SELECT * FROM c", None).await?.try_collect().await?;
    Ok(())
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(databases()).expect("an answer");
}
"""


class Clients:
    """The clients of the table. Each method runs its client once, in the current folder of the run, and gives its end and its words."""

    def __init__(self, given: argparse.Namespace, port: int, other_port: int) -> None:
        self.given = given
        self.local, self.other = f"{LOCAL}:{port}", f"{OTHER}:{other_port}"
        self.folder = Path(given.work)
        self.rows: dict[str, Callable[[str], Optional[subprocess.CompletedProcess]]] = {
            "curl": self.shell, "Python": self.python, "Python, asynchronous": self.python_async, "Node.js": self.node, "Java": self.java,
            "Go": self.go, "Rust": self.rust,
        }

    def shell(self, command: str, **more: str) -> subprocess.CompletedProcess:
        environment = dict(os.environ, KEY=astrarium.KEY, **more)
        environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
        words = ["bash", "-euo", "pipefail", "-c", command.replace("https://127.0.0.1:8081", self.local)]
        return subprocess.run(words, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=SECONDS_MAX)

    def python(self, expression: str) -> subprocess.CompletedProcess:
        expression = expression.replace("https://127.0.0.1:8081", self.local)
        (self.folder / "client.py").write_text(PYTHON.format(key=astrarium.KEY, expression=expression), encoding="utf-8")
        return self.shell("python client.py")

    def python_async(self, command: str, endpoint: str = "") -> subprocess.CompletedProcess:
        text = PYTHON_ASYNC.format(key=astrarium.KEY, endpoint=endpoint or self.other)
        (self.folder / "app.py").write_text(text, encoding="utf-8")
        return self.shell(command)

    def node(self, command: str) -> Optional[subprocess.CompletedProcess]:
        if not self.given.node:
            return None
        packages = self.folder / "node_modules"
        if not packages.exists():
            packages.symlink_to(Path(self.given.node).resolve() / "node_modules")
        (self.folder / "app.js").write_text(NODE % (self.local, astrarium.KEY), encoding="utf-8")
        return self.shell(command)

    def java(self, _: str) -> Optional[subprocess.CompletedProcess]:
        """The commands of the README's first steps, from the making of the trust store on."""
        page = self.given.page and Path(self.given.page)
        if not page or not (page / "lib").exists():
            return None
        program = (page / "FirstSteps.java").read_text(encoding="utf-8")
        (self.folder / "FirstSteps.java").write_text(re.sub(r"https://127\.0\.0\.1:\d+", self.local, program), encoding="utf-8")
        if not (self.folder / "lib").exists():
            (self.folder / "lib").symlink_to((page / "lib").resolve())
        (block,) = [block for block in readme_blocks(self.given.root) if block.language == "sh" and "keytool" in block.text]
        kept = [line for line in block.text.splitlines() if line.startswith(("rm -f", "keytool", "java "))]
        return self.shell("\n".join(kept))

    def go(self, command: str) -> Optional[subprocess.CompletedProcess]:
        if not self.given.go:
            return None
        module = self.folder / "go"
        if not module.exists():
            module.mkdir()
            for name in ("go.mod", "go.sum"):
                shutil.copy(Path(self.given.root) / "packages" / "strangers" / "go" / name, module)
            text = (module / "go.mod").read_text(encoding="utf-8")
            packages = (Path(self.given.root) / "packages" / "go").resolve()
            (module / "go.mod").write_text(text.replace("=> ../../go", f"=> {packages}"), encoding="utf-8")
            (module / "main.go").write_text(GO, encoding="utf-8")
        return self.built("cd go && go build -o ../app .", command)

    def rust(self, command: str) -> Optional[subprocess.CompletedProcess]:
        if not self.given.rust:
            return None
        crate = self.folder / "rust"
        if not crate.exists():
            blocks.rust_crate(Path(self.given.root), crate, RUST)
        # What the suite of the SDK has built is used again.
        target = Path(self.given.rust).resolve()
        build = f"cd rust && CARGO_TARGET_DIR={target} cargo build --quiet --locked && cp {target}/debug/{blocks.RUST_PROGRAM} ../app"
        return self.built(build, command)

    def built(self, build: str, command: str) -> subprocess.CompletedProcess:
        made = self.shell(build)
        if made.returncode != 0:
            raise SystemExit(f"https: {build}: {made.stdout}")
        return self.shell(command, ENDPOINT=self.local)

    def verify_nothing(self) -> list[str]:
        """What the README says of local names, with a wrong authority in `astrarium.pem`."""
        wrong = []
        if self.python('CosmosClient("https://127.0.0.1:8081", key, connection_verify="astrarium.pem")').returncode != 0:
            wrong.append("Python verifies on 127.0.0.1 without ssl_config: the README says otherwise")
        if self.python_async("python app.py", self.local).returncode != 0:
            wrong.append("asynchronous Python verifies on 127.0.0.1: the README says otherwise")
        return wrong


def readme_blocks(root: Path) -> list[blocks.Block]:
    return blocks.blocks_of(root / "README.md", root)


def table(root: Path) -> list[tuple[str, str]]:
    """The rows: a client, and the first code of how it is done."""
    text = (root / "README.md").read_text(encoding="utf-8")
    lines = text.split("| client | how |\n", 1)[1].split("\n\n", 1)[0].splitlines()[1:]
    rows = []
    for line in lines:
        _, clients, how, _ = re.split(r"(?<!\\)\|", line)
        code = re.search(r"`([^`]+)`", how)
        names = [clients.strip()] if "asynchronous" in clients else [name.strip() for name in clients.split(",")]
        rows += [(name, code[1] if code else "") for name in names]
    return rows


def start_other(binary: str) -> tuple[subprocess.Popen, int]:
    """A server at a name that SDKs do not take for this machine's own."""
    words = [binary, "serve", "--memory", "--listen", "127.0.0.2:0", "--certificate-name", "127.0.0.2", "--until-stdin-closes"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    line = process.stdout.readline()
    found = re.search(r"AccountEndpoint=http://127\.0\.0\.2:(\d+)/", line)
    if found is None:
        raise SystemExit(f"https: the server at 127.0.0.2 did not start: {line}")
    return process, int(found[1])


def authority(endpoint: str) -> bytes:
    with urllib.request.urlopen(f"{endpoint}/_explorer/emulator.pem", timeout=SECONDS_MAX) as answer:
        return answer.read()


def run(clients: Clients, right: dict[str, bytes]) -> tuple[int, list[str], list[str]]:
    """Does every row with the right authority and with the wrong one; gives what was run, left out and wrong."""
    done, left_out, wrong = 0, [], []
    pem = clients.folder / "astrarium.pem"
    for name, code in table(clients.given.root):
        if name in NOT_RUN:
            continue
        if name not in clients.rows:
            wrong.append(f"the client {name} of the README's table is not known here")
            continue
        server = OTHER if name == "Python, asynchronous" else LOCAL
        pem.write_bytes(right[server])
        good = clients.rows[name](code)
        if good is None:
            left_out.append(name)
            continue
        pem.write_bytes(right[OTHER if server == LOCAL else LOCAL])
        bad = clients.rows[name](code)
        done += 1
        if good.returncode != 0:
            wrong.append(f"{name} is refused: {good.stdout}")
        if bad.returncode == 0 or not REFUSAL.search(bad.stdout):
            wrong.append(f"{name} with a wrong authority ended with {bad.returncode}: {bad.stdout}")
    pem.write_bytes(right[OTHER])
    return done, left_out, wrong + clients.verify_nothing()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--binary", required=True, help="the program")
    parser.add_argument("--work", required=True, help="a folder for what is made")
    parser.add_argument("--node", help="a folder whose node_modules have the SDK")
    parser.add_argument("--page", help="the folder in which the blocks of the README ran")
    parser.add_argument("--go", action="store_true")
    parser.add_argument("--rust", help="the target folder of the suite of the Rust SDK")
    given = parser.parse_args()
    Path(given.work).mkdir(parents=True)
    other, other_port = start_other(given.binary)
    try:
        with astrarium.start() as server:
            port = int(re.search(r":(\d+)/", server.endpoint)[1])
            right = {LOCAL: authority(f"http://127.0.0.1:{port}"), OTHER: authority(f"http://127.0.0.2:{other_port}")}
            done, left_out, wrong = run(Clients(given, port, other_port), right)
    finally:
        other.stdin.close()
        other.wait(SECONDS_MAX)
    for line in wrong:
        print(f"FAILED https: {line}")
    if left_out:
        print(f"https clients left out, whose tools are not there: {', '.join(left_out)}")
    print(f"https clients: {done} run, {len(NOT_RUN)} not run ({', '.join(NOT_RUN)}), {len(wrong)} failed")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
