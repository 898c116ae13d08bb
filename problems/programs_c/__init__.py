"""Small C programs without a library, for the compilers of C and of what clang makes of C.

Each defines `uint64_t run(uint64_t seed)`, which does its work on inputs made from the seed and returns a sum over the
results; everything else is static. Equal sums for a few seeds say that a compiler kept a program's meaning.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
SEEDS = (1, 2, 12345678901)
"""What programs are run with to compare results."""


def names() -> tuple[str, ...]:
    """Return the names of the programs."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.c")))
