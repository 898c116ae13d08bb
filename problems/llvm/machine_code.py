"""A module after its passes: its size, its functions as parts, and its results and time when it runs here."""

from __future__ import annotations

import ctypes
import hashlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import llvmlite.binding as llvm
import numpy as np

from ..pass_order.state import Operation

_SAMPLES = 30
_SAMPLE_SECONDS = 5e-4


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


class Running:
    """A module compiled into this process. The module cannot be used afterwards; leaving the context frees the code.

    Args:
      effort: optimisation level of the code generator: 0 to compare results, 2 to measure time.
    """

    def __init__(self, module: llvm.ModuleRef, effort: int) -> None:
        machine = llvm.Target.from_triple(module.triple).create_target_machine(opt=effort, jit=True)
        self._engine = llvm.create_mcjit_compiler(module, machine)

    def __enter__(self) -> Running:
        self._engine.finalize_object()
        signature = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)
        self._run = signature(self._engine.get_function_address("run"))
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is None:  # otherwise the code may still be running
            self._engine.close()

    def results(self, seeds: Sequence[int]) -> tuple[int, ...]:
        """Return the result for each seed."""
        return tuple(self._run(seed) for seed in seeds)

    def first_results(self, seeds: Sequence[int], seconds: float, before: Callable[[], None]) -> tuple[int, ...]:
        """Return the result for each seed of a program that has never run before and may not end.

        A call that does not return ends only with this process, so the calls are made in a thread.

        Args:
          before: called in that thread before the first call.

        Raises:
          ValueError: it has not returned after `seconds`.
        """
        found: list[int] = []

        def call() -> None:
            before()
            for seed in seeds:
                found.append(self._run(seed))

        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        thread.join(seconds)
        if len(found) < len(seeds):
            raise ValueError(f"run({seeds[len(found)]}) did not return in {seconds:g} s")
        return tuple(found)

    def seconds(self, seed: int) -> float:
        """Return the seconds of one call: the least of several samples of many calls each."""
        once = self._sample(seed, 1)
        calls = max(1, int(_SAMPLE_SECONDS / max(once, 1e-7)))
        return min(self._sample(seed, calls) for _ in range(_SAMPLES))

    def _sample(self, seed: int, calls: int) -> float:
        started = time.perf_counter()
        for _ in range(calls):
            self._run(seed)
        return (time.perf_counter() - started) / calls


def runnable(module: llvm.ModuleRef) -> bool:
    """True if `run` can be called here: it is `i64 (i64)`, for this processor, and all that it needs exists."""
    functions = {function.name: function for function in module.functions}
    run = functions.get("run")
    if run is None or run.is_declaration or str(run.global_value_type) != "i64 (i64)":
        return False
    if module.triple.split("-")[0] != llvm.get_process_triple().split("-")[0]:
        return False
    outside = [f.name for f in functions.values() if f.is_declaration and not f.name.startswith("llvm.")]
    outside += [v.name for v in module.global_variables if v.is_declaration and not v.name.startswith("llvm.")]
    return all(hasattr(ctypes.CDLL(None), name) for name in outside)


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
_SYMBOL = np.dtype(
    [("name", "<u4"), ("kind", "u1"), ("other", "u1"), ("section", "<u2"), ("start", "<u8"), ("size", "<u8")]
)
"""An entry of the symbol table of a 64-bit ELF file."""
_FUNCTION = 2


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
