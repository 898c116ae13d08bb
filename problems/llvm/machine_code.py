"""A module after its passes: its size, and its functions as parts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

import llvmlite.binding as llvm

from .. import elf
from ..pass_order.state import Operation


def instructions(text: str) -> int:
    """Return the number of instructions in a module's text: lines indented by two blanks, except `uselistorder`."""
    return text.count("\n  ") - text.count("\n   ") - text.count("\n  ]") - text.count("\n  uselistorder")


def code_bytes(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> int:
    """Return the bytes of the object's text sections; the module is not changed."""
    return sum(section.size() for section in sections(module, machine) if section.is_text())


def sections(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> Iterator[llvm.SectionIteratorRef]:
    """Yield the sections of the object; the module is not changed."""
    copy = llvm.parse_bitcode(module.as_bitcode())  # emitting code changes the module
    yield from llvm.ObjectFileRef.from_data(machine.emit_object(copy)).sections()


OPCODES = tuple(
    re.findall(
        r"\S+",
        """
    add alloca and ashr atomicrmw bitcast br call cmpxchg extractelement extractvalue fadd fcmp fdiv fence fmul fneg
    fpext fptosi fptoui fptrunc freeze frem fsub getelementptr icmp insertelement insertvalue inttoptr load lshr mul or
    phi ptrtoint ret sdiv select sext shl shufflevector sitofp srem store sub switch trunc udiv uitofp unreachable urem
    xor zext
    """,
    )
)
"""The kinds of instructions that an observation counts separately."""
Row = tuple[str, bytes, float, float]
"""Name, digest of the content, count, and cost."""
_DEFINED = re.compile(r"^define [^@]*@([^(]+)\(.*?^\}", re.MULTILINE | re.DOTALL)
_INSTRUCTION = re.compile(r"^  (?:(%\S+) = )?(?:tail |musttail |notail )?((?!uselistorder)[a-z]+)(.*)", re.MULTILINE)
_LOCAL = re.compile(r"%[\w.$-]+")


def text_functions(text: str) -> list[Row]:
    """Return the functions of a module's text with their instructions."""
    found = ((define[1], define[0]) for define in _DEFINED.finditer(text))
    return [(name, _digest(body.encode()), 1.0, float(instructions(body))) for name, body in found]


def graph(text: str) -> Iterator[Operation]:
    """Yield the instructions of a module's text with their operands, for the description of a state."""
    for number, define in enumerate(_DEFINED.finditer(text)):
        for place, (name, kind, rest) in enumerate(_INSTRUCTION.findall(define[0])):
            yield (number, name or place), kind, [(number, operand) for operand in _LOCAL.findall(rest)]


def code_functions(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> list[Row]:
    """Return the functions of a module with the bytes of their code, and a part of no name: what lies between them.

    An object in another format than 64-bit ELF is one part of no name.
    """
    made = {
        section.name(): (section.size(), section.is_text(), section.data()) for section in sections(module, machine)
    }
    tables = (made[name][2] if name in made else b"" for name in (b".symtab", b".strtab"))
    found = elf.distinct(elf.functions(*tables))  # an alias is no function of its own
    rows: list[Row] = [(each.name, b"", 1.0, float(each.length)) for each in found]
    rest = sum(size for size, is_text, _ in made.values() if is_text) - sum(row[-1] for row in rows)
    return [*rows, ("", b"", 1.0, float(rest))] if rest else rows


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()
