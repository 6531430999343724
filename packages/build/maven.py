"""Makes the JUnit 5 extension as a Maven repository in a folder: the jar, its sources, and a jar with the program for each platform.

Whoever publishes copies the folder to a repository; tests point Maven at it. The classes are compiled by Maven (`packages/java/pom.xml`).
"""

import hashlib
import io
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

from binary import Binary

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parent / "java"


def build(binaries: list[Binary], folder: Path) -> list[Path]:
    """Writes the repository into the folder, and gives the files that matter."""
    version = binaries[0].version
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise FileNotFoundError(tool)
    subprocess.run(["mvn", "--batch-mode", "--quiet", "--no-transfer-progress", "compile"], cwd=SOURCES, check=True)
    place = folder / "astrarium" / "astrarium-junit5" / version
    place.mkdir(parents=True, exist_ok=True)
    stem = f"astrarium-junit5-{version}"
    classes = SOURCES / "target" / "classes"
    sources = SOURCES / "src" / "main" / "java"
    made = [
        _write(place / f"{stem}.jar", _jar(_files(classes, ".class"))),
        _write(place / f"{stem}-sources.jar", _jar(_files(sources, ".java"))),
        _write(place / f"{stem}.pom", _pom(version)),
    ]
    for binary in binaries:
        name = f"linux-{binary.machine}"
        made.append(_write(place / f"{stem}-{name}.jar", _jar({f"astrarium/{name}/astrarium": binary.content})))
    return made


def _pom(version: str) -> bytes:
    text = (SOURCES / "pom.xml").read_text(encoding="utf-8")
    return re.sub(r"(<artifactId>astrarium-junit5</artifactId>\s*<version>)[^<]*", rf"\g<1>{version}", text).encode()


def _files(folder: Path, ending: str) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob(f"*{ending}"))}


def _jar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, content in {"META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\r\n\r\n", **files}.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return out.getvalue()


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    # Maven looks for a checksum beside every file.
    path.with_name(path.name + ".sha1").write_text(hashlib.sha1(content).hexdigest(), encoding="ascii")
    return path
