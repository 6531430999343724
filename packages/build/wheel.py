"""Makes the Python wheel: the program as a command, a module that starts servers, and a pytest plugin.

A wheel is a zip file with a list of its files; no build tool is needed for that. The same input gives the same bytes.
"""

import base64
import hashlib
import zipfile
from pathlib import Path

from binary import Binary

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SOURCES = HERE.parent / "python"

METADATA = """\
Metadata-Version: 2.4
Name: astrarium
Version: {version}
Summary: A document database that speaks the protocol of Azure Cosmos DB for NoSQL, as a command and for tests
License-Expression: MIT OR Apache-2.0
License-File: LICENSE-MIT
License-File: LICENSE-APACHE
Requires-Python: >=3.9
Classifier: Framework :: Pytest
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: Database :: Database Engines/Servers
Description-Content-Type: text/markdown

{readme}"""

WHEEL = """\
Wheel-Version: 1.0
Generator: astrarium packages
Root-Is-Purelib: false
Tag: py3-none-{platform}
"""


def platform(binary: Binary) -> str:
    """The least system that the program runs on, as a wheel's name says it."""
    if binary.glibc is None:
        return f"manylinux_2_17_{binary.machine}.musllinux_1_1_{binary.machine}"
    major, minor = binary.glibc
    return f"manylinux_{major}_{minor}_{binary.machine}"


def build(binary: Binary, folder: Path) -> Path:
    """Writes the wheel into the folder, and gives its path."""
    stem = f"astrarium-{binary.version}"
    tag = platform(binary)
    files: list[tuple[str, bytes, int]] = []
    for source in sorted(SOURCES.glob("astrarium/*")):
        if source.suffix in (".py", ".typed"):
            files.append((f"astrarium/{source.name}", source.read_bytes(), 0o644))
    files.append((f"{stem}.data/scripts/astrarium", binary.content, 0o755))
    info = f"{stem}.dist-info"
    readme = (SOURCES / "README.md").read_text(encoding="utf-8")
    wheel = "".join(WHEEL.format(platform=one) if at == 0 else f"Tag: py3-none-{one}\n" for at, one in enumerate(tag.split(".")))
    files.append((f"{info}/METADATA", METADATA.format(version=binary.version, readme=readme).encode(), 0o644))
    files.append((f"{info}/WHEEL", wheel.encode(), 0o644))
    files.append((f"{info}/entry_points.txt", b"[pytest11]\nastrarium = astrarium.pytest_plugin\n", 0o644))
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        files.append((f"{info}/licenses/{name}", (ROOT / name).read_bytes(), 0o644))
    record = "".join(f"{name},sha256={_digest(content)},{len(content)}\n" for name, content, _ in files)
    files.append((f"{info}/RECORD", (record + f"{info}/RECORD,,\n").encode(), 0o644))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}-py3-none-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, content, mode in files:
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return path


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
