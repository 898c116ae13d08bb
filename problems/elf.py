"""What a build has made: which bytes are loaded when it runs, and how large its functions are."""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_MAGIC = b"\x7fELF\x02\x01"
"""ELF of 64 bits, little end first."""
_LOADED, _NOT_IN_FILE, _NOTE, _SYMBOLS = 2, 8, 7, 2
_RELOCATABLE = 1
_SYMBOL = np.dtype(
    [("name", "<u4"), ("kind", "u1"), ("other", "u1"), ("section", "<u2"), ("start", "<u8"), ("size", "<u8")]
)
"""An entry of the symbol table."""
_FUNCTION = 2


class _Section(NamedTuple):
    name: str
    kind: int
    flags: int
    address: int
    length: int
    linked: int
    content: bytes


def _sections(data: bytes) -> list[_Section]:
    (start,), (size, count, named) = struct.unpack_from("<Q", data, 0x28), struct.unpack_from("<HHH", data, 0x3A)
    heads = [struct.unpack_from("<IIQQQQI", data, start + place * size) for place in range(count)]
    contents = [
        b"" if kind == _NOT_IN_FILE else data[offset : offset + length] for _, kind, _, _, offset, length, _ in heads
    ]
    names = contents[named] if named < count else b""
    return [
        _Section(_text(names, name), kind, flags, address, length, linked, content)
        for (name, kind, flags, address, _, length, linked), content in zip(heads, contents, strict=True)
    ]


def _text(names: bytes, place: int) -> str:
    return names[place:].partition(b"\0")[0].decode(errors="replace")


def _loaded(file: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yield each section of an ELF file that is loaded from it: its header without places in the file, and its bytes.

    Of any other file, its whole content. Notes are left out: the build's id covers names of files, too.
    """
    data = file.read_bytes()
    if not data.startswith(_MAGIC):
        yield b"", data
        return
    for section in _sections(data):
        if section.flags & _LOADED and section.kind != _NOTE:
            yield struct.pack("<IQQQ", section.kind, section.flags, section.address, section.length), section.content


def is_program(file: Path) -> bool:
    """Return whether a file is a program or a library that can be loaded, not one that has to be linked yet."""
    with file.open("rb") as opened:
        head = opened.read(18)
    return head.startswith(_MAGIC) and len(head) == 18 and struct.unpack_from("<H", head, 16)[0] != _RELOCATABLE


def digest(files: Iterable[Path]) -> str:
    """Return a hash of what is loaded of files."""
    state = hashlib.blake2b(digest_size=16)
    for file in files:
        for header, content in _loaded(file):
            state.update(header + hashlib.blake2b(content, digest_size=16).digest())
    return state.hexdigest()


def size(file: Path) -> int:
    """Return the bytes that are loaded from a file: code, constants, data, tables for unwinding."""
    return sum(len(content) for _, content in _loaded(file))


def sizes(file: Path) -> Counter[str]:
    """Return the bytes of each loaded section and of each function, by name; empty for a file of another format.

    Copies of a function that a compiler makes, such as `f.part.0`, count as the function.
    """
    data, found = file.read_bytes(), Counter[str]()
    sections = _sections(data) if data.startswith(_MAGIC) else []
    for section in sections:
        if section.flags & _LOADED and section.kind != _NOTE:
            found[section.name] += section.length
        elif section.kind == _SYMBOLS:
            names = sections[section.linked].content if section.linked < len(sections) else b""
            for name, length in functions(section.content, names):
                found[name.partition(".")[0]] += length
    return found


def functions(table: bytes, names: bytes) -> Iterator[tuple[str, int]]:
    """Yield the functions of a symbol table with their bytes.

    Args:
      names: the table of names that belongs to it.
    """
    symbols: NDArray = np.frombuffer(table, _SYMBOL, len(table) // _SYMBOL.itemsize)
    defined = symbols[(symbols["kind"] & 15 == _FUNCTION) & (symbols["section"] > 0)]
    _, first = np.unique(defined[["section", "start"]], return_index=True)  # an alias is no function of its own
    for symbol in defined[first]:
        yield _text(names, int(symbol["name"])), int(symbol["size"])
