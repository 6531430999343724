"""Makes packages of a built program: `python3 packages/build/main.py KIND... --binary PROGRAM --out FOLDER`.

Kinds: wheel, npm, maven, image. Prints the files that it made, one per line. Only the standard library is used.
"""

import argparse
import sys
from pathlib import Path

sys.dont_write_bytecode = True

from binary import inspect  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="+", choices=["wheel", "npm", "maven", "image"])
    parser.add_argument("--binary", type=Path, required=True, help="the built program")
    parser.add_argument("--out", type=Path, required=True, help="folder for the packages")
    parser.add_argument("--shell", type=Path, default=None, help="a static shell (busybox) for the image that has one")
    given = parser.parse_args()
    binary = inspect(given.binary)
    made = []
    for kind in given.kinds:
        if kind == "wheel":
            import wheel

            made.append(wheel.build(binary, given.out))
        elif kind == "npm":
            import npm

            made += npm.build([binary], given.out)
        elif kind == "maven":
            import maven

            made += maven.build([binary], given.out / "maven")
        else:
            import image

            made += image.build(binary, given.shell, given.out)
    for path in made:
        print(path)


if __name__ == "__main__":
    main()
