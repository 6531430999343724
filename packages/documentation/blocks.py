"""Runs the code blocks of the documentation: `blocks.py --root R --binary B --work W [--node N] [--maven M] [--go] [--rust] [PAGE...]`.

Every fenced block of the README, of docs/ and of the packages' READMEs is run, parsed, or says why not. What stands after its language:

- nothing: a program of its own, against an empty server of its page; `127.0.0.1:8081` stands for that server's address;
- `continues`: goes on where the block of the same language before it ended;
- `file NAME`: is written to that file in the folder of the page, where its commands run;
- `repeat`: commands, or a program in Rust, that are run twice, since a reader does that too;
- `server`: a command that ends with a running server; it is waited for until it is ready, and stopped;
- `documents`: JSON that is put into the container which the SQL of the page asks;
- `not-run: reason`: not run, and counted.

Commands without an address of a server go to that of the page. `/path/to/astrarium` stands for this repository, and
`/path/to/astrarium/dist` for the folder given with `--dist`. A block of JSON after one of SQL is what that gives. JSON, XML and TOML are
parsed. A language that is not known is an error. Needs the Python environment with the SDK and the wheel; blocks of a language whose tools
are not given are counted as left out.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree
from dataclasses import dataclass, field
from pathlib import Path

import astrarium
from azure.cosmos import CosmosClient, PartitionKey

FENCE = re.compile(r"^(\s*)```(\S*)[ \t]*(.*)$")
SECONDS_MAX = 300
#: The name of the package of the suite of the Rust SDK, and so of the programs that are built with it.
RUST_PROGRAM = "sdk-tests"
ADDRESS = re.compile(r"(127\.0\.0\.1|localhost):8081")


@dataclass
class Block:
    page: Path
    line: int
    language: str
    mode: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass
class Tally:
    run: int = 0
    parsed: int = 0
    written: int = 0
    not_run: list[str] = field(default_factory=list)
    left_out: collections.Counter = field(default_factory=collections.Counter)
    failed: list[str] = field(default_factory=list)


def blocks_of(page: Path, root: Path) -> list[Block]:
    """The fenced blocks of a page, those that continue another one together with it."""
    found: list[Block] = []
    opened = None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = FENCE.match(line)
        if opened is None and fence:
            opened = (number, len(fence[1]), fence[2], fence[3].strip(), [])
        elif opened is not None and line.strip() == "```":
            number, indent, language, mode, lines = opened
            text = "\n".join(one[indent:] if one[:indent].isspace() else one for one in lines) + "\n"
            found.append(Block(page.relative_to(root), number, language, mode, text))
            opened = None
        elif opened is not None:
            opened[4].append(line)
    if opened is not None:
        raise SystemExit(f"{page}:{opened[0]}: the block has no end")
    return found


class Runner:
    def __init__(self, given: argparse.Namespace, tally: Tally) -> None:
        self.given = given
        self.tally = tally
        self.folder = Path(given.work)
        self.bin = self.folder / "bin"
        self.bin.mkdir(parents=True)
        (self.bin / "astrarium").symlink_to(Path(given.binary).resolve())
        root = Path(given.root).resolve()
        # In this order: the first is longer.
        self.paths = {"/path/to/astrarium/dist": str(Path(given.dist or root / "dist").resolve()), "/path/to/astrarium": str(root)}
        if given.maven:
            self.own_maven(Path(given.maven).resolve())

    def page(self, blocks: list[Block]) -> None:
        """Runs the blocks of a page against a server of its own."""
        folder = self.folder / "pages" / re.sub(r"\W+", "-", str(blocks[0].page))
        folder.mkdir(parents=True)
        with astrarium.start() as server:
            address = server.endpoint.split("://")[1].rstrip("/")
            before: Block | None = None
            earlier: dict[str, str] = {}
            for block in blocks:
                block.text = ADDRESS.sub(address, block.text)
                for path, stands_for in self.paths.items():
                    block.text = block.text.replace(path, stands_for)
                if block.mode == "continues":
                    block.text = earlier[block.language] + block.text
                earlier[block.language] = block.text
                try:
                    self.block(block, before, folder, server)
                except Failed as failure:
                    self.tally.failed.append(f"{block.place}: {failure}")
                before = block

    def block(self, block: Block, before: Block | None, folder: Path, server: astrarium.Server) -> None:
        if block.mode.startswith("not-run:"):
            reason = block.mode.split(":", 1)[1].strip()
            if not reason:
                raise Failed("not-run has no reason")
            self.tally.not_run.append(f"{block.place}: {reason}")
            return
        if block.mode.startswith("file "):
            name = block.mode.removeprefix("file ").strip()
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise Failed(f"{name} is not in the folder of the page")
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(block.text, encoding="utf-8")
            self.tally.written += 1
            return
        if block.mode not in ("", "continues", "repeat", "server", "documents"):
            raise Failed(f"{block.mode!r} is not known; see packages/documentation/blocks.py")
        kinds = {"": None, "text": None, "json": self.json, "xml": self.xml, "toml": self.toml, "sql": self.sql, "sh": self.shell,
                 "python": self.python, "js": self.javascript, "javascript": self.javascript, "java": self.java, "go": self.go,
                 "rust": self.rust}
        if block.language not in kinds:
            raise Failed(f"the language {block.language!r} is not known; run it here, or mark it not-run: with a reason")
        run = kinds[block.language]
        if run is None:
            return
        if run(block, before, folder, server) is not False:
            if block.language in ("json", "xml", "toml"):
                self.tally.parsed += 1
            else:
                self.tally.run += 1

    def command(self, words: list[str], folder: Path, **more: str) -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ASTRARIUM_")}
        path = [str(self.bin), str(Path(sys.executable).parent)]
        if self.given.node:
            path.append(str(Path(self.given.node) / "node_modules" / ".bin"))
        environment["PATH"] = os.pathsep.join([*path, environment["PATH"]])
        environment.update(more)
        try:
            ended = subprocess.run(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, timeout=SECONDS_MAX)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"did not end within {SECONDS_MAX} s: {late.stdout}") from late
        if ended.returncode != 0:
            raise Failed(f"ended with {ended.returncode}:\n{ended.stdout}")
        return ended.stdout

    def own_maven(self, folder: Path) -> None:
        """A command `mvn` that uses the settings and the local repository of the tests, and prints no colours."""
        words = f"--batch-mode --no-transfer-progress --settings {folder / 'settings.xml'} -Dmaven.repo.local={folder / 'm2'}"
        (self.bin / "mvn").write_text(f'#!/bin/sh\nexec {shutil.which("mvn")} {words} "$@"\n', encoding="utf-8")
        (self.bin / "mvn").chmod(0o755)

    def left_out(self, language: str) -> bool:
        self.tally.left_out[language] += 1
        return False

    def json(self, block: Block, before: Block | None, folder: Path, server: astrarium.Server) -> None:
        try:
            value = json.loads(block.text)
        except ValueError as error:
            raise Failed(f"is no JSON: {error}") from error
        if block.mode == "documents":
            for number, document in enumerate(value):
                self.container(server).upsert_item({"id": str(number), **document})
        elif before is not None and before.language == "sql" and before.page == block.page:
            if self.rows != value:
                raise Failed(f"the query above gives {json.dumps(self.rows)}")

    def container(self, server: astrarium.Server):
        database = CosmosClient(server.endpoint, server.key).create_database_if_not_exists("documentation")
        return database.create_container_if_not_exists("c", PartitionKey("/id"))

    def xml(self, block: Block, *_: object) -> None:
        try:
            xml.etree.ElementTree.fromstring(block.text)
        except xml.etree.ElementTree.ParseError as error:
            raise Failed(f"is no XML: {error}") from error

    def toml(self, block: Block, *_: object) -> bool | None:
        try:
            import tomllib
        except ImportError:
            return self.left_out("toml")
        try:
            tomllib.loads(block.text)
        except tomllib.TOMLDecodeError as error:
            raise Failed(f"is no TOML: {error}") from error
        return None

    def sql(self, block: Block, before: Block | None, folder: Path, server: astrarium.Server) -> None:
        try:
            found = self.container(server).query_items(block.text, enable_cross_partition_query=True)
            self.rows = [{name: value for name, value in row.items() if not name.startswith("_")} if isinstance(row, dict) else row
                         for row in found]
        except Exception as error:  # Whatever the SDK has for it.
            raise Failed(str(error)) from error

    def shell(self, block: Block, before: Block | None, folder: Path, server: astrarium.Server) -> bool | None:
        tools = {"npx": self.given.node, "npm": self.given.node, "go": self.given.go, "mvn": self.given.maven, "java": self.given.maven}
        for tool, given in tools.items():
            if re.search(rf"^{tool} ", block.text, re.MULTILINE) and not given:
                return self.left_out(tool)
        if "-maven.tar.gz" in block.text and not self.given.maven:
            # The archive is made by the part `java`.
            return self.left_out("mvn")
        if block.mode != "server":
            for _ in range(2 if block.mode == "repeat" else 1):
                self.command(["bash", "-euo", "pipefail", "-c", block.text], folder, ASTRARIUM_ENDPOINT=server.endpoint)
            return None
        return self.serving(block, Path(self.given.node) if block.text.startswith("npx ") else folder)

    def serving(self, block: Block, folder: Path) -> None:
        """Starts a server as the block says, on a free port, and stops it when it is ready."""
        environment = dict(os.environ, ASTRARIUM_LISTEN="127.0.0.1:0", ASTRARIUM_ADDRESS="127.0.0.1")
        path = [str(self.bin), str(Path(self.given.node or ".") / "node_modules" / ".bin"), environment["PATH"]]
        environment["PATH"] = os.pathsep.join(path)
        text = re.sub(r"--listen \S+", "", block.text)
        process = subprocess.Popen(["bash", "-euo", "pipefail", "-c", text], cwd=folder, env=environment, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        said, ready, began = "", False, time.monotonic()
        while not ready and time.monotonic() - began < SECONDS_MAX:
            line = process.stdout.readline()
            if not line:
                break
            said += line
            ready = line.startswith("Astrarium is ready")
        os.killpg(process.pid, 15)
        process.communicate(timeout=SECONDS_MAX)
        if not ready:
            raise Failed(f"was not ready: {said}")

    def python(self, block: Block, before: Block | None, folder: Path, server: astrarium.Server) -> None:
        path = folder / f"test_{block.line}.py"
        path.write_text(block.text, encoding="utf-8")
        is_test = "\ndef test_" in "\n" + block.text
        module = ["-m", "pytest", "-q", "-p", "no:cacheprovider"] if is_test else []
        self.command([sys.executable, "-B", *module, path.name], folder)

    def javascript(self, block: Block, *_: object) -> bool | None:
        if not self.given.node:
            return self.left_out("javascript")
        ending = "cjs" if "require(" in block.text else "mjs"
        path = Path(self.given.node) / f"block-{block.page.stem}-{block.line}.{ending}"
        path.write_text(block.text, encoding="utf-8")
        self.command(["node", path.name], path.parent)
        return None

    def java(self, block: Block, before: Block | None, folder: Path, server: astrarium.Server) -> bool | None:
        # Tests were put among the tests of the project that uses the extension (`--java-tests`); programs are files that commands run.
        if "@Test" not in block.text:
            raise Failed("a program in Java is a file, which commands of its page run")
        return None if self.given.maven else self.left_out("java")

    def go(self, block: Block, *_: object) -> bool | None:
        if not self.given.go:
            return self.left_out("go")
        packages = Path(self.given.root).resolve() / "packages"
        module = self.folder / "go"
        if not module.exists():
            module.mkdir()
            shutil.copy(packages / "strangers" / "go" / "go.sum", module)
            text = (packages / "strangers" / "go" / "go.mod").read_text(encoding="utf-8")
            (module / "go.mod").write_text(text.replace("=> ../../go", f"=> {packages / 'go'}"), encoding="utf-8")
        place = module / f"{re.sub(r'[^a-z]', '', str(block.page).lower())}{block.line}"
        place.mkdir()
        is_test = "*testing.T" in block.text
        (place / ("block_test.go" if is_test else "main.go")).write_text(block.text, encoding="utf-8")
        self.command(["go", "test" if is_test else "run", "."], place, ASTRARIUM_BIN=str(Path(self.given.binary).resolve()))
        return None

    def rust(self, block: Block, *_: object) -> bool | None:
        if not self.given.rust:
            return self.left_out("rust")
        crate = self.folder / f"rust-{block.line}"
        rust_crate(Path(self.given.root), crate, block.text)
        # What the suite of the SDK has built is used again.
        for _ in range(2 if block.mode == "repeat" else 1):
            self.command(["cargo", "run", "--quiet", "--locked"], crate, CARGO_TARGET_DIR=self.given.rust)
        return None


def rust_crate(root: Path, crate: Path, program: str) -> None:
    """A crate with the program and the dependencies of the suite of the Rust SDK."""
    suite = root.resolve() / "tests" / "sdk" / "rust"
    (crate / "src").mkdir(parents=True)
    manifest = (suite / "Cargo.toml").read_text(encoding="utf-8")
    (crate / "Cargo.toml").write_text(re.sub(r"\[\[test\]\]\n(?:\w.*\n)*", "", manifest), encoding="utf-8")
    shutil.copy(suite / "Cargo.lock", crate)
    (crate / "src" / "main.rs").write_text(program, encoding="utf-8")


class Failed(Exception):
    """A block that does not do what it should; says what it did."""


def pages(root: Path) -> list[Path]:
    return [root / "README.md", *sorted((root / "docs").glob("*.md")), *sorted((root / "packages").glob("*/README.md"))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--binary", help="the program")
    parser.add_argument("--work", help="a folder for what is made")
    parser.add_argument("--node", help="a folder whose node_modules have the SDK and the packages")
    parser.add_argument("--maven", help="a folder with Maven's settings.xml and the local repository m2")
    parser.add_argument("--dist", help="a folder with the packages as a release has them")
    parser.add_argument("--go", action="store_true")
    parser.add_argument("--rust", help="the target folder of the suite of the Rust SDK")
    parser.add_argument("--java-tests", type=Path, help="only write the tests among the Java blocks into this folder")
    given = parser.parse_args()
    found = [blocks_of(page, given.root) for page in given.pages or pages(given.root)]
    if given.java_tests:
        for block in (block for blocks in found for block in blocks if block.language == "java" and not block.mode):
            name = re.search(r"class (\w+)", block.text)[1]
            (given.java_tests / f"{name}.java").write_text(block.text, encoding="utf-8")
        return
    tally = Tally()
    runner = Runner(given, tally)
    for blocks in found:
        if blocks:
            runner.page(blocks)
    for line in tally.failed:
        print(f"FAILED {line}")
    reasons = collections.Counter(line.split(": ", 1)[1] for line in tally.not_run)
    for reason, count in sorted(reasons.items()):
        print(f"blocks not run: {count}, {reason}")
    for language, count in sorted(tally.left_out.items()):
        print(f"blocks left out: {count} of {language}, whose tools are not there")
    print(f"blocks: {tally.run} run, {tally.written} files that these use, {tally.parsed} parsed, {len(tally.not_run)} not run, {len(tally.failed)} failed")
    sys.exit(bool(tally.failed))


if __name__ == "__main__":
    main()
