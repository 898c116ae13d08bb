"""The parts that a child tells: names, contents, counts and costs become keys, and bytes for the cache."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np

from ..parts.parts import Parts

PARTS = "parts"
"""A request `(PARTS, request)` asks for a pair: the answer to the request, and the rows of its parts."""
PartRow = tuple[str, bytes, float, float]
"""A part as a child tells it: its name, its content as far as it is known, its count, and its cost."""
_ROW = np.dtype([("key", "<u8"), ("count", "<f8"), ("cost", "<f8")])


def packed(program: str, rows: Iterable[PartRow]) -> bytes:
    """Return the parts of a candidate as bytes.

    The first 16 bits of a key are a hash of the program and of the part's name, so that a strategy can tell which parts
    of two candidates were made of the same function. The others are a hash of its content and cost, too.

    Args:
      program: text that differs for every problem.
    """
    return np.array([(_key(program, *row), row[2], row[3]) for row in rows], _ROW).tobytes()


def _key(program: str, name: str, content: bytes, count: float, cost: float) -> int:
    named = hashlib.blake2b(f"{program}|{name}".encode(), digest_size=2).digest()
    whole = hashlib.blake2b(f"{program}|{name}|{cost!r}|".encode() + content, digest_size=6).digest()
    return int.from_bytes(named + whole)


def unpacked(candidates: Sequence[bytes]) -> Parts:
    """Return the parts of candidates from their bytes, which are empty where there are none."""
    rows = np.frombuffer(b"".join(candidates), _ROW)
    starts = np.cumsum([0, *(len(candidate) // _ROW.itemsize for candidate in candidates)])
    fields = (rows[name].astype(kind) for name, kind in (("key", np.uint64), ("count", float), ("cost", float)))
    return Parts(starts, *fields)


def is_packed(candidate: object) -> bool:
    """True for what `packed` may have returned."""
    return isinstance(candidate, bytes) and len(candidate) % _ROW.itemsize == 0
