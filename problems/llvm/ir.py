"""Programs as LLVM text: those that ship, and a user's.

`python -m bbo_problems.llvm.ir CLANG...` makes the shipped texts from the C programs. It needs a clang that is not
newer than the LLVM of llvmlite. The shipped texts were made by clang 22.1.8, from `pip install ziglang`:
`python -m bbo_problems.llvm.ir python -m ziglang clang`. Functions ask for minimal size, and nothing is optimised yet.
The target is fixed, so that every machine optimises the same program.
"""

from __future__ import annotations

import gzip
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bbo_suite import UserError
from bbo_suite.files.reading import read_bounded

from .. import programs_c
from ..packages import zig
from ..reading import explained

FOLDER = Path(__file__).parent / "ir"
LARGEST = 1 << 28
"""Largest text in bytes."""
_EMPTY = '"bbo-empty"'  # a group of attributes may not be empty


def names() -> tuple[str, ...]:
    """Return the names of the programs that ship."""
    return tuple(sorted(path.name.removesuffix(".ll.gz") for path in FOLDER.glob("*.ll.gz")))


def shipped(name: str) -> str:
    """Return the text of a program that ships."""
    return read(FOLDER / f"{name}.ll.gz")


def read(path: Path, with_lines: bool = False) -> str:
    """Return the text of a module, plain or gzipped, or of what clang makes of a file of C or C++.

    Args:
      with_lines: whether clang writes which line each instruction comes from.

    Raises:
      UserError: it cannot be read or compiled, or is too large.
    """
    if path.suffix in SOURCES:
        return from_source(path, with_lines)
    with explained(path, "LLVM text"):
        text = read_bounded(path, LARGEST)
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path} is not LLVM text; make it with clang -S -emit-llvm") from None


def lowering(path: Path, with_lines: bool = False) -> list[str]:
    """Return the arguments by which zig's clang makes a module of a file, which nothing has optimised yet.

    Args:
      with_lines: of the source, for each instruction; then for any processor, too, as clang does it by itself.
    """
    plain = ["-mcpu=baseline", "-fomit-frame-pointer", "-fno-stack-protector", "-fno-sanitize=all"]
    debug = ["-gline-tables-only", "-fdebug-compilation-dir=.", *plain] if with_lines else ["-g0"]
    optional = ["-O1", "-Xclang", "-disable-llvm-passes", "-fno-sanitize=all", *debug, "-w"]
    return ["c++" if path.suffix in SOURCES[1:] else "cc", *optional, "-S", "-emit-llvm", argument(str(path)), "-o"]


def argument(name: str) -> str:
    """Return a file's name as a program takes it to which `-a` is an option and `@a` a file of options."""
    return f"./{name}" if name.startswith(("-", "@")) else name


def from_source(path: Path, with_lines: bool = False) -> str:
    """Return the module that zig's clang, of the LLVM of llvmlite, makes of a file of C or C++.

    Raises:
      UserError: zig is missing or cannot take the file's name, or the file does not compile.
    """
    if found := re.search(r"[\\:\n]", path.name):
        raise UserError(f"cannot compile {str(path)!r}: zig takes no name with {found[0]!r}; give the file another one")
    with explained(path, "a file of C or C++"):
        read_bounded(path, LARGEST)
    program, caches = zig(f"a file of {'C++' if path.suffix in SOURCES[1:] else 'C'}")
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "module.ll")
        command = [program, *lowering(Path(path.name), with_lines), str(made)]
        variables = _UNDATED | os.environ | caches
        done = subprocess.run(command, cwd=path.parent, env=variables, capture_output=True, text=True)
        if done.returncode or not made.exists():
            lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines() or [""]
            raise UserError(f"{path} does not compile: {lines[0][:200]} ({_WITH_FLAGS})")
        return _HEADER.sub(r"\1ziglang/lib/", _PRECISE.sub(r"\1\2", made.read_text()))


SOURCES = (".c", ".cc", ".cpp", ".cxx", ".cp", ".c++", ".CPP", ".C")
"""How names of files of C and, from the second on, of C++ end."""
_UNDATED = {"SOURCE_DATE_EPOCH": "0"}
"""For `__DATE__` and `__TIME__`: otherwise a file that has them would be another problem each time it is read."""
_UNOPTIMISED = "-O1 -Xclang -disable-llvm-passes -S -emit-llvm"
_WITH_FLAGS = f"if it needs flags, such as -I or -D, give what `clang FLAGS {_UNOPTIMISED}` writes"
_PRECISE = re.compile(r'^(target triple = "[\w-]+-linux)[\d.]+(-[a-z]+)[\d.]*(?=")', re.MULTILINE)
"""A target that names versions of the kernel and of libc, which zig does."""
_HEADER = re.compile(r'(!DIFile\(filename: ")[^"]*/ziglang/lib/')
"""A header of zig, which lies elsewhere in each virtual environment."""


def without_size(text: str) -> str:
    """Return a module without the attributes of functions that ask for small code."""

    def plain(group: re.Match[str]) -> str:
        kept = re.sub(r"\b(minsize|optsize)\b ?", "", group[2])
        return f"{group[1]}{{ {kept.strip() or _EMPTY} }}"

    return re.sub(r"^(attributes #\d+ = )\{(.*)\}$", plain, text, flags=re.MULTILINE)


COMMAND = shlex.split("""-target x86_64-linux-gnu -std=c17 -ffp-contract=off -fno-unwind-tables
 -fno-asynchronous-unwind-tables -fno-ident -g0 -Oz -Xclang -disable-llvm-passes -S -emit-llvm -o -""")


def lowered(clang: Sequence[str], name: str) -> bytes:
    """Return the LLVM text of a program."""
    file = programs_c.source(name)  # its folder must not be in the text
    return subprocess.run([*clang, *COMMAND, file.name], cwd=file.parent, stdout=subprocess.PIPE, check=True).stdout


def main() -> None:
    """Write the text of every program."""
    for name in (*programs_c.names(), *programs_c.large_names()):
        (FOLDER / f"{name}.ll.gz").write_bytes(gzip.compress(lowered(sys.argv[1:], name), 9, mtime=0))


if __name__ == "__main__":
    main()
