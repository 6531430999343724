"""Makes container images without a daemon, as OCI layouts in tar files that `docker load`, `podman load` and `skopeo` take.

Two of them: `scratch` has the program and the C library that it needs, and nothing else; `shell` has a static busybox besides, since port
checks of test tools run `/bin/sh`. Both start `astrarium emulator`. The same input gives the same bytes.
"""

import gzip
import hashlib
import io
import json
import re
import subprocess
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

from binary import Binary, is_dynamic

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
PROGRAM = "usr/bin/astrarium"
#: Where clients of the service's emulator look for the certificate.
CERTIFICATE = "/tmp/cosmos/appdata/.system/profiles/Client/AppData/Local/CosmosDBEmulator/emulator.pem"
#: What a port check or a person inside of a container needs.
COMMANDS = ["cat", "cp", "env", "grep", "head", "ls", "mkdir", "nc", "ps", "rm", "sh", "sleep", "tail", "test", "true", "wget"]
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@dataclass
class Layer:
    """Files of an image that change together."""

    comment: str
    entries: list[tuple[tarfile.TarInfo, bytes]] = field(default_factory=list)

    def folder(self, name: str, mode: int = 0o755) -> None:
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode = tarfile.DIRTYPE, mode
        self.entries.append((entry, b""))

    def file(self, name: str, content: bytes, mode: int = 0o644) -> None:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(content), mode
        self.entries.append((entry, content))

    def link(self, name: str, target: str) -> None:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, target, 0o777
        self.entries.append((entry, b""))

    def tar(self) -> bytes:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for entry, content in self.entries:
                archive.addfile(entry, io.BytesIO(content))
        return out.getvalue()


def build(binary: Binary, shell: Path | None, folder: Path) -> list[Path]:
    """Writes the images into the folder; the one with a shell only if there is a shell for it."""
    folder.mkdir(parents=True, exist_ok=True)
    if shell and (shell.read_bytes()[:4] != b"\x7fELF" or is_dynamic(shell.read_bytes())):
        raise SystemExit(f"{shell} is no static program; an image has no library for it")
    variants = [("scratch", None)] + ([("shell", shell)] if shell else [])
    made = []
    for variant, chosen in variants:
        name = f"astrarium-{binary.version}-{variant}-linux-{ARCHITECTURES[binary.machine]}.oci.tar"
        made.append(_write(folder / name, _image(binary, chosen, variant)))
    return made


def _image(binary: Binary, shell: Path | None, variant: str) -> dict[str, bytes]:
    """The files of an OCI layout, by path."""
    layers = [_base(binary, shell), _program(binary)]
    blobs: dict[str, bytes] = {}

    def blob(media_type: str, content: bytes) -> dict:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    described, identities = [], []
    for layer in layers:
        plain = layer.tar()
        identities.append("sha256:" + hashlib.sha256(plain).hexdigest())
        described.append(blob("application/vnd.oci.image.layer.v1.tar+gzip", gzip.compress(plain, 6, mtime=0)))
    config = blob("application/vnd.oci.image.config.v1+json", _json(_config(binary, layers, identities, variant)))
    manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": described}
    entry = blob(MANIFEST, _json(manifest))
    tag = binary.version if variant == "shell" else f"{binary.version}-{variant}"
    entry["annotations"] = {"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": f"docker.io/library/astrarium:{tag}"}
    entry["platform"] = {"architecture": ARCHITECTURES[binary.machine], "os": "linux"}
    paths = [f"blobs/sha256/{layer['digest'].split(':')[1]}" for layer in described]
    older = [{"Config": f"blobs/sha256/{config['digest'].split(':')[1]}", "RepoTags": [f"astrarium:{tag}"], "Layers": paths}]
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [entry]}
    return {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json(index),
        # For Docker before version 25, which knows no layouts.
        "manifest.json": _json(older),
        **blobs,
    }


def _config(binary: Binary, layers: list[Layer], identities: list[str], variant: str) -> dict:
    labels = {
        "title": "Astrarium",
        "description": "A document database that speaks the protocol of Azure Cosmos DB for NoSQL, in the place of its emulator",
        "version": binary.version,
        "licenses": "MIT OR Apache-2.0",
    }
    return {
        "architecture": ARCHITECTURES[binary.machine],
        "os": "linux",
        "created": "1980-01-01T00:00:00Z",
        "config": {
            "Entrypoint": [f"/{PROGRAM}", "emulator"],
            "Env": ["PATH=/usr/bin:/bin", "ASTRARIUM_ADDRESS=0.0.0.0", "DATA_PATH=/data", f"ASTRARIUM_CERTIFICATE_FILE={CERTIFICATE}"],
            "ExposedPorts": {"8081/tcp": {}, "8080/tcp": {}, "1234/tcp": {}},
            "WorkingDir": "/",
            "StopSignal": "SIGTERM",
            "Labels": {f"org.opencontainers.image.{name}": value for name, value in labels.items()} | {"astrarium.variant": variant},
            # Docker's own; others ignore it. In nanoseconds.
            "Healthcheck": {"Test": ["CMD", f"/{PROGRAM}", "health"], "Interval": 5 * 10**9, "Timeout": 5 * 10**9, "StartInterval": 10**8},
        },
        "rootfs": {"type": "layers", "diff_ids": identities},
        "history": [{"created": "1980-01-01T00:00:00Z", "created_by": layer.comment} for layer in layers],
    }


def _base(binary: Binary, shell: Path | None) -> Layer:
    layer = Layer("astrarium: folders, C library" + (", static shell" if shell else ""))
    for name in ("usr", "usr/bin", "bin", "etc", "lib64"):
        layer.folder(name)
    layer.folder("tmp", 0o1777)
    layer.folder("data", 0o700)
    layer.file("etc/passwd", b"root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")
    layer.file("etc/group", b"root:x:0:\nnobody:x:65534:\n")
    layer.file("etc/nsswitch.conf", b"hosts: files dns\n")
    made = {"usr", "usr/bin", "bin", "etc", "lib64"}
    for path in _libraries(binary):
        inside = str(path).lstrip("/")
        for parent in reversed(Path(inside).parents[:-1]):
            if str(parent) not in made:
                made.add(str(parent))
                layer.folder(str(parent))
        layer.file(inside, path.resolve().read_bytes(), 0o755)
    if shell:
        layer.file("bin/busybox", shell.read_bytes(), 0o755)
        for command in COMMANDS:
            layer.link(f"bin/{command}", "busybox")
    return layer


def _program(binary: Binary) -> Layer:
    layer = Layer(f"astrarium {binary.version}")
    layer.file(PROGRAM, binary.content, 0o755)
    return layer


def _libraries(binary: Binary) -> list[Path]:
    """The libraries that the program is loaded with, the loader among them, as this machine has them."""
    if binary.glibc is None:
        return []
    told = subprocess.run(["ldd", str(binary.path)], capture_output=True, text=True, check=True).stdout
    found = [Path(path) for path in re.findall(r"(/\S+) \(0x", told)]
    if not found:
        raise SystemExit(f"ldd names no libraries of {binary.path}: {told}")
    return found


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def _write(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return path
