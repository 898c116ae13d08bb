"""What a build has made: which bytes are loaded when it runs."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

_MAGIC = b"\x7fELF\x02\x01"
"""ELF of 64 bits, little end first."""
_LOADED, _NOT_IN_FILE, _NOTE = 2, 8, 7
_RELOCATABLE = 1


def loaded(file: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yield each section of an ELF file that is loaded from it: its header without places in the file, and its bytes.

    Of any other file, its whole content. Notes are left out: the build's id covers names of files, too.
    """
    data = file.read_bytes()
    if not data.startswith(_MAGIC):
        yield b"", data
        return
    (start,), (size, count) = struct.unpack_from("<Q", data, 0x28), struct.unpack_from("<HH", data, 0x3A)
    for place in range(start, start + size * count, size):
        _, kind, flags, address, offset, length = struct.unpack_from("<IIQQQQ", data, place)
        if flags & _LOADED and kind != _NOTE:
            yield (
                struct.pack("<IQQQ", kind, flags, address, length),
                b"" if kind == _NOT_IN_FILE else data[offset : offset + length],
            )


def is_program(file: Path) -> bool:
    """Return whether a file is a program or a library that can be loaded, not one that has to be linked yet."""
    with file.open("rb") as opened:
        head = opened.read(18)
    return head.startswith(_MAGIC) and len(head) == 18 and struct.unpack_from("<H", head, 16)[0] != _RELOCATABLE


def digest(files: Iterable[Path]) -> str:
    """Return a hash of what is loaded of files."""
    state = hashlib.blake2b(digest_size=16)
    for file in files:
        for header, content in loaded(file):
            state.update(header + hashlib.blake2b(content, digest_size=16).digest())
    return state.hexdigest()


def size(file: Path) -> int:
    """Return the bytes that are loaded from a file: code, constants, data, tables for unwinding."""
    return sum(len(content) for _, content in loaded(file))
