"""The functions of an optimised module as parts: their instructions, or the bytes of their code."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

import llvmlite.binding as llvm
import numpy as np

from .machine_code import instructions, sections

Row = tuple[str, bytes, float, float]
"""Name, digest of the content, count, and cost."""
_DEFINED = re.compile(r"^define [^@]*@([^(]+)\(.*?^\}", re.MULTILINE | re.DOTALL)
_SYMBOL = np.dtype(
    [("name", "<u4"), ("kind", "u1"), ("other", "u1"), ("section", "<u2"), ("start", "<u8"), ("size", "<u8")]
)
"""An entry of the symbol table of a 64-bit ELF file."""
_FUNCTION = 2


def text_functions(text: str) -> list[Row]:
    """Return the functions of a module's text with their instructions."""
    found = ((define[1], define[0]) for define in _DEFINED.finditer(text))
    return [(name, _digest(body.encode()), 1.0, float(instructions(body))) for name, body in found]


def code_functions(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> list[Row]:
    """Return the functions of a module with the bytes of their code, and a part of no name: what lies between them.

    An object in another format than 64-bit ELF is one part of no name.
    """
    made = {
        section.name(): (section.size(), section.is_text(), section.data()) for section in sections(module, machine)
    }
    rows = list(_symbols(*(made[name][2] if name in made else b"" for name in (b".symtab", b".strtab"))))
    rest = sum(size for size, is_text, _ in made.values() if is_text) - sum(row[-1] for row in rows)
    return [*rows, ("", b"", 1.0, float(rest))] if rest else rows


def _symbols(table: bytes, names: bytes) -> Iterator[Row]:
    symbols = np.frombuffer(table, _SYMBOL)
    defined = symbols[(symbols["kind"] & 15 == _FUNCTION) & (symbols["section"] > 0)]
    _, first = np.unique(defined[["section", "start"]], return_index=True)  # an alias is no function of its own
    for symbol in defined[first]:
        name = names[symbol["name"] : names.index(b"\0", symbol["name"])].decode()
        yield name, b"", 1.0, float(symbol["size"])


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()
