"""Checks an image that was made: digests, sizes, configuration, layers; unpacks it, and if it may, runs it in a chroot.

`check.py IMAGE.oci.tar FOLDER`. Ends with 1 and a sentence if something is wrong. What a daemon would do is done by hand: unpack the layers in
order, set the environment, start the entry point.
"""

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

CERTIFICATE = "tmp/cosmos/appdata/.system/profiles/Client/AppData/Local/CosmosDBEmulator/emulator.pem"
SECONDS_MAX = 300
#: It is where administrators have their programs, which may not be on the path.
CHROOT = shutil.which("chroot", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def main() -> None:
    image, root = Path(sys.argv[1]), Path(sys.argv[2])
    with tarfile.open(image) as archive:
        files = {entry.name: archive.extractfile(entry).read() for entry in archive if entry.isfile()}
    config, layers = described(files)
    settings = config["config"]
    expect(settings["Entrypoint"] == ["/usr/bin/astrarium", "emulator"], "the entry point is the emulator's profile")
    expect(set(settings["ExposedPorts"]) == {"8081/tcp", "8080/tcp", "1234/tcp"}, "the emulator's ports are exposed")
    expect("ASTRARIUM_ADDRESS=0.0.0.0" in settings["Env"], "it listens beyond the container")
    expect(settings["Labels"]["org.opencontainers.image.version"], "there is a version")
    expect(f"ASTRARIUM_CERTIFICATE_FILE=/{CERTIFICATE}" in settings["Env"], "the certificate goes where it is looked for")
    for layer in layers:
        with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
            for entry in archive:
                expect(not entry.name.startswith(("/", "..")), f"{entry.name} stays inside")
                expect((entry.uid, entry.gid, entry.mtime) == (0, 0, 0), f"{entry.name} says nothing of who packed it")
            # Names were looked at above; the rights are to be as they are said.
            archive.extractall(root, **({"filter": "fully_trusted"} if hasattr(tarfile, "tar_filter") else {}))
    program = root / "usr/bin/astrarium"
    expect(os.access(program, os.X_OK), "the program can be run")
    expect((root / "tmp").stat().st_mode & 0o7777 == 0o1777, "/tmp is everybody's")
    kind = settings["Labels"]["astrarium.variant"]
    if os.getuid() != 0 or CHROOT is None:
        print(f"image {kind}: {image.stat().st_size / 1e6:.1f} MB, its parts are right; not run, which needs root and chroot")
        return
    ran = run(root, settings)
    if kind == "shell":
        told = inside(root, settings, ["/bin/sh", "-c", "command -v nc grep && echo good"])
        expect(told.strip().endswith("good"), f"the shell answers: {told}")
    else:
        expect(not (root / "bin/sh").exists(), "scratch has no shell")
    print(f"image {kind}: {image.stat().st_size / 1e6:.1f} MB, {len(layers)} layers, started in {ran:.0f} ms in a chroot")


def described(files: dict[str, bytes]) -> tuple[dict, list[bytes]]:
    """Follows the layout from its index, and gives the configuration and the layers, unpacked."""
    expect(json.loads(files["oci-layout"])["imageLayoutVersion"] == "1.0.0", "the layout has its version")
    used = {"oci-layout", "index.json", "manifest.json"}

    def blob(descriptor: dict) -> bytes:
        kind, digest = descriptor["digest"].split(":")
        content = files[f"blobs/{kind}/{digest}"]
        used.add(f"blobs/{kind}/{digest}")
        expect(hashlib.sha256(content).hexdigest() == digest, f"{digest} is the digest of its content")
        expect(len(content) == descriptor["size"], f"{digest} has the size that is said")
        return content

    (entry,) = json.loads(files["index.json"])["manifests"]
    manifest = json.loads(blob(entry))
    config = json.loads(blob(manifest["config"]))
    layers = [gzip.decompress(blob(layer)) for layer in manifest["layers"]]
    identities = ["sha256:" + hashlib.sha256(layer).hexdigest() for layer in layers]
    expect(config["rootfs"]["diff_ids"] == identities, "the configuration names the layers")
    expect(len(config["history"]) == len(layers), "every layer has a history")
    (older,) = json.loads(files["manifest.json"])
    expect([layer["digest"].split(":")[1] for layer in manifest["layers"]] == [path.split("/")[-1] for path in older["Layers"]],
           "older daemons see the same layers")
    expect(used == set(files), f"nothing is there that nobody names: {set(files) - used}")
    return config, layers


def environment(settings: dict) -> dict[str, str]:
    given = dict(variable.split("=", 1) for variable in settings["Env"])
    # Ports of a machine that may have others there already.
    return given | {"PORT": "0", "HEALTH_PORT": "0", "EXPLORER_PORT": "0", "ASTRARIUM_ADDRESS": "127.0.0.1"}


def inside(root: Path, settings: dict, words: list[str]) -> str:
    ended = subprocess.run([CHROOT, str(root), *words], env=environment(settings), capture_output=True, text=True, timeout=SECONDS_MAX)
    expect(ended.returncode == 0, f"{words} ended with {ended.returncode}: {ended.stdout}{ended.stderr}")
    return ended.stdout


def run(root: Path, settings: dict) -> float:
    """Starts the entry point, waits until it has started, asks for its health by the program of the image; gives the milliseconds."""
    began = time.monotonic()
    process = subprocess.Popen([CHROOT, str(root), *settings["Entrypoint"]], env=environment(settings), stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    try:
        lines = []
        while not lines or lines[-1] != b"Started\r\n":
            line = process.stdout.readline()
            expect(line, f"it started: {lines}")
            lines.append(line)
        took = (time.monotonic() - began) * 1000
        (address,) = [line.split(b": ")[1].decode().strip() for line in lines if line.startswith(b"Now listening on: ")]
        inside(root, settings, ["/usr/bin/astrarium", "health", "--endpoint", address])
        expect("BEGIN CERTIFICATE" in (root / CERTIFICATE).read_text(), "the certificate is where it is looked for")
        expect((root / "data/tls/server.pem").exists(), "the data is in /data")
    finally:
        process.terminate()
        process.wait(SECONDS_MAX)
    return took


def expect(holds: object, what: str) -> None:
    if not holds:
        sys.exit(f"not so: {what}")


if __name__ == "__main__":
    main()
