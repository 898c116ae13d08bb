"""Makes the shipped LLVM text from the C programs: `python -m bbo_problems.llvm.make_ir CLANG...`.

Needs a clang that is not newer than the LLVM of llvmlite. The shipped text was made by clang 22.1.8, from `pip install
ziglang`: `python -m bbo_problems.llvm.make_ir python -m ziglang clang`. Functions ask for minimal size, and nothing is
optimised yet. The target is fixed, so that every machine optimises the same program.
"""

from __future__ import annotations

import gzip
import shlex
import subprocess
import sys
from collections.abc import Sequence

from ..programs_c import large_names, names, source
from .ir import FOLDER as TARGET

COMMAND = shlex.split("""-target x86_64-linux-gnu -std=c17 -ffp-contract=off -fno-unwind-tables
 -fno-asynchronous-unwind-tables -fno-ident -g0 -Oz -Xclang -disable-llvm-passes -S -emit-llvm -o -""")


def lowered(clang: Sequence[str], name: str) -> bytes:
    """Return the LLVM text of a program."""
    file = source(name)  # its folder must not be in the text
    return subprocess.run([*clang, *COMMAND, file.name], cwd=file.parent, stdout=subprocess.PIPE, check=True).stdout


def main() -> None:
    """Write the text of every program."""
    for name in (*names(), *large_names()):
        (TARGET / f"{name}.ll.gz").write_bytes(gzip.compress(lowered(sys.argv[1:], name), 9, mtime=0))


if __name__ == "__main__":
    main()
