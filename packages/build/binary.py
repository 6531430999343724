"""What a package has to know of the program: version, machine, and which C library it needs.

In: the built program. Out: plain values. Nothing is guessed from the machine that packs: the file itself says what it is.
"""

import re
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

MACHINES = {62: "x86_64", 183: "aarch64"}


@dataclass(frozen=True)
class Binary:
    """A built program."""

    path: Path
    version: str
    machine: str
    glibc: tuple[int, int] | None
    """The least version of the GNU C library that it runs with; none if it is linked statically."""

    @property
    def content(self) -> bytes:
        return self.path.read_bytes()


def inspect(path: Path) -> Binary:
    """Reads what the program is. Fails with a sentence if it cannot be packed."""
    content = path.read_bytes()
    if content[:4] != b"\x7fELF" or content[4:6] != b"\x02\x01":
        raise SystemExit(f"{path} is no 64-bit program for Linux; packages are made of those only")
    (number,) = struct.unpack_from("<H", content, 18)
    machine = MACHINES.get(number)
    if machine is None:
        raise SystemExit(f"{path} is for machine {number}, which has no package yet")
    needed = {(int(major), int(minor)) for major, minor in re.findall(rb"GLIBC_(\d+)\.(\d+)", content)}
    told = subprocess.run([path.resolve(), "--version"], capture_output=True, text=True, check=True).stdout
    return Binary(path, told.split()[1], machine, max(needed) if is_dynamic(content) and needed else None)


def is_dynamic(content: bytes) -> bool:
    """Whether a program header names an interpreter."""
    (offset,) = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<HH", content, 54)
    return any(struct.unpack_from("<I", content, offset + at * size)[0] == 3 for at in range(count))


if __name__ == "__main__":
    program = inspect(Path(sys.argv[1]))
    needs = "no C library" if program.glibc is None else "glibc {}.{}".format(*program.glibc)
    print(f"astrarium {program.version} for {program.machine} needs {needs}")
