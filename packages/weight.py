"""What the program weighs, and what of it: `python3 packages/weight.py PROGRAM`.

Sections from the program's own headers, code by crate from its symbols (`nm`). Generic code is counted where it was compiled for, that is under the
type that it belongs to; what has no name of ours (C code, tables of the compiler) is told as such.
"""

import collections
import gzip
import re
import subprocess
import sys
from pathlib import Path


def main() -> None:
    path = Path(sys.argv[1])
    content = path.read_bytes()
    print(f"{len(content) / 1e6:.1f} MB, {len(gzip.compress(content, 6)) / 1e6:.1f} MB compressed")
    told = subprocess.run(["size", "-A", str(path)], capture_output=True, text=True, check=True).stdout
    sizes = {words[0]: int(words[1]) for words in map(str.split, told.splitlines()) if len(words) == 3 and words[0].startswith(".")}
    for name, what in [(".text", "code"), (".rodata", "tables and texts"), (".eh_frame", "how to unwind"), (".gcc_except_table", "how to unwind"),
                       (".rela.dyn", "addresses to fill in"), (".data.rel.ro", "tables with addresses")]:
        if name in sizes:
            print(f"{sizes[name] / 1e6:8.2f} MB  {name:18} {what}")
    rest = len(content) - sum(size for name, size in sizes.items() if name not in (".bss", ".tbss"))
    print(f"{rest / 1e6:8.2f} MB  {'symbols':18} names for traces of failures")
    symbols = subprocess.run(["nm", "--print-size", "--demangle", str(path)], capture_output=True, text=True, check=True).stdout
    crates: collections.Counter = collections.Counter()
    for line in symbols.splitlines():
        found = re.match(r"[0-9a-f]+ ([0-9a-f]+) [tTwW] (.*)", line)
        if found:
            crates[crate(found[2])] += int(found[1], 16)
    print("\ncode by crate")
    for name, size in crates.most_common(20):
        print(f"{size / 1e6:8.2f} MB  {name}")


def crate(symbol: str) -> str:
    """The first crate that a symbol names, other than the standard library, which is compiled for somebody."""
    names = re.findall(r"(?<![:\w])([A-Za-z_][A-Za-z0-9_]*)(?:\[[0-9a-f]+\])?::", symbol)
    own = [name for name in names if name not in ("core", "alloc", "std")]
    return (own or names or ["C and assembly"])[0]


if __name__ == "__main__":
    main()
