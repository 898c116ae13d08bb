"""ELF files: which bytes are loaded when a program runs, and how large code and functions are."""

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
_FUNCTION, _LOCAL = 2, 0


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
    for each in distinct(_functions(sections)):
        found[each.name.partition(".")[0]] += each.length
    return found


class Function(NamedTuple):
    """A function of a symbol table; functions at one place are names of the same code.

    Attributes:
      place: its section and where it begins there.
      length: in bytes.
      is_local: whether it is not visible to other files.
    """

    name: str
    place: tuple[int, int]
    length: int
    is_local: bool


class Text(NamedTuple):
    """The code of an object file: the bytes of its text sections, and its functions in the order of the file."""

    length: int
    functions: list[Function]


def text(file: Path) -> Text:
    """Return the code of an object file.

    Raises:
      OSError: the file is not an ELF file of 64 bits.
    """
    data = file.read_bytes()
    if not data.startswith(_MAGIC):
        raise OSError(f"{file.name} is not an ELF file of 64 bits, little end first")
    sections = _sections(data)
    length = sum(section.length for section in sections if section.name.startswith(".text"))
    return Text(length, list(_functions(sections)))


def functions(table: bytes, names: bytes) -> Iterator[Function]:
    """Yield the functions that a symbol table defines, in its order.

    Args:
      names: the table of names that belongs to it.
    """
    symbols: NDArray = np.frombuffer(table, _SYMBOL, len(table) // _SYMBOL.itemsize)
    for symbol in symbols[(symbols["kind"] & 15 == _FUNCTION) & (symbols["section"] > 0)]:
        place = int(symbol["section"]), int(symbol["start"])
        yield Function(_text(names, int(symbol["name"])), place, int(symbol["size"]), symbol["kind"] >> 4 == _LOCAL)


def distinct(found: Iterable[Function]) -> list[Function]:
    """Return functions by their places, without aliases: the first name of each counts."""
    first: dict[tuple[int, int], Function] = {}
    for each in found:
        first.setdefault(each.place, each)
    return [first[place] for place in sorted(first)]


def _functions(sections: list[_Section]) -> Iterator[Function]:
    for section in sections:
        if section.kind == _SYMBOLS:
            names = sections[section.linked].content if section.linked < len(sections) else b""
            yield from functions(section.content, names)
