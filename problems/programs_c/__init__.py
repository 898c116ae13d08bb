"""C programs that use no library, for GCC, and for LLVM after clang has lowered them.

Each defines `uint64_t run(uint64_t seed)`, which makes its inputs from the seed and returns a checksum of its results;
everything else is static. If the checksums for a few seeds stay the same, the compiler has kept the program's meaning.
Those in the folder `large` have ten functions and more.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
LARGE = FOLDER / "large"
SEEDS = (1, 2, 12345678901)
"""Arguments of `run` when results are compared."""


def names() -> tuple[str, ...]:
    """Return the names of the small programs."""
    return _names(FOLDER)


def large_names() -> tuple[str, ...]:
    """Return the names of the large programs."""
    return _names(LARGE)


def source(name: str) -> Path:
    """Return the file of a program."""
    return (LARGE if name in large_names() else FOLDER) / f"{name}.c"


def _names(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in folder.glob("*.c")))
