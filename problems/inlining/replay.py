"""Replays inlining decisions with clang, and says whether the size and the results are as promised."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from bbo_suite import UserError

from ..packages import zig
from ..reading import explained

NOTHING = "none:1:1: 'none' inlined into 'none' at callsite none:1:1;"
"""A line for a file in which nothing is inlined."""


def replaying(file: str, level: str) -> list[str]:
    """Return the arguments by which clang inlines at a level what a file says, and nothing else."""
    options = [f"-cgscc-inline-replay={file}", "-cgscc-inline-replay-scope=Module"]
    options.append("-cgscc-inline-replay-fallback=NeverInline")
    return [level, "-gline-tables-only", *(word for option in options for word in ("-mllvm", option))]


def replayed(module: str, lines: str, level: str, promised: float | None, results: Callable[[str], str]) -> str:
    """Compile a module with zig's clang on its own and as the lines say, and return what that gives, in a few words.

    Args:
      module: as LLVM text, not optimised.
      lines: what is inlined where.
      level: of optimisation, such as -Oz.
      promised: the bytes of code, if the cost says them.
      results: says of what clang makes, as LLVM text, whether its results are right.
    """
    try:
        program, caches = zig("replaying")
    except UserError as error:
        return f"not tried: {error}"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "module.ll").write_text(module)
        Path(folder, "lines").write_text(f"{lines}\n")
        files = {"alone.o": [level, "-c"], "replayed.o": [*replaying("lines", level), "-c"]}
        files["replayed.ll"] = [*replaying("lines", level), "-S", "-emit-llvm"]
        for file, options in files.items():
            command = [program, "clang", *options, "-w", "module.ll", "-o", file]
            done = subprocess.run(command, cwd=folder, env=os.environ | caches, capture_output=True, text=True)
            if done.returncode:
                return f"clang fails: {(done.stderr.strip().splitlines() or [''])[0][:200]}"
        alone, size = (_code_bytes(Path(folder, file)) for file in list(files)[:2])
        right = results(Path(folder, "replayed.ll").read_text())
    same = "" if promised is None else ", as promised" if size == promised else f", not {promised:,.0f}"
    return f"{alone:,} -> {size:,} bytes with clang{same}; {right}"


def _code_bytes(file: Path) -> int:
    import llvmlite.binding as llvm

    with explained(file, "an object"):
        sections = llvm.ObjectFileRef.from_path(str(file)).sections()
        return sum(section.size() for section in sections if section.is_text())
