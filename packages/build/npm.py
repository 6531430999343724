"""Makes the npm packages: `astrarium`, a launcher without dependencies, and one package per platform with the program.

npm takes of the optional ones what fits the machine; nothing is downloaded by scripts at installation. A package is a gzipped tar file;
the same input gives the same bytes.
"""

import gzip
import io
import json
import tarfile
from pathlib import Path

from binary import Binary

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SOURCES = HERE.parent / "npm"
PROCESSORS = {"x86_64": "x64", "aarch64": "arm64"}


def build(binaries: list[Binary], folder: Path) -> list[Path]:
    """Writes the packages into the folder, the launcher first, and gives their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    launcher = json.loads((SOURCES / "package.json").read_text(encoding="utf-8"))
    launcher["version"] = binaries[0].version
    launcher["optionalDependencies"] = {_name(binary): binary.version for binary in binaries}
    licences = {name: ((ROOT / name).read_bytes(), 0o644) for name in ("LICENSE-MIT", "LICENSE-APACHE")}
    files = {"package.json": (_json(launcher), 0o644), **licences}
    for pattern in launcher["files"] + ["README.md"]:
        source = SOURCES / pattern
        for path in sorted(source.rglob("*")) if source.is_dir() else [source]:
            executable = path.parent.name == "bin"
            files[str(path.relative_to(SOURCES))] = (path.read_bytes(), 0o755 if executable else 0o644)
    made = [_write(folder / f"astrarium-{launcher['version']}.tgz", files)]
    for binary in binaries:
        processor = PROCESSORS[binary.machine]
        package = {
            "name": _name(binary),
            "version": binary.version,
            "description": f"The astrarium program for Linux on {processor}; installed by the package astrarium",
            "license": launcher["license"],
            "os": ["linux"],
            "cpu": [processor],
            "files": ["bin"],
        }
        if binary.glibc is not None:
            package["libc"] = ["glibc"]
        files = {"package.json": (_json(package), 0o644), "bin/astrarium": (binary.content, 0o755), **licences}
        made.append(_write(folder / f"astrarium-linux-{processor}-{binary.version}.tgz", files))
    return made


def _name(binary: Binary) -> str:
    return f"@astrarium/linux-{PROCESSORS[binary.machine]}"


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()


def _write(path: Path, files: dict[str, tuple[bytes, int]]) -> Path:
    with open(path, "wb") as out, gzip.GzipFile(fileobj=out, mode="wb", compresslevel=6, mtime=0, filename="") as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for name, (content, mode) in files.items():
                entry = tarfile.TarInfo(f"package/{name}")
                entry.size, entry.mode = len(content), mode
                archive.addfile(entry, io.BytesIO(content))
    return path
