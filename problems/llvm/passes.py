"""Runs sequences of passes on one module; what was run from the same state before is not run again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache, lru_cache

import llvmlite.binding as llvm

from .actions import FUNCTIONS, MODULE

_KEPT = 256
_SHARED_BYTES = 128 << 20
_SWAPPED = """define i64 @f(i64 %x) {
  %y = add i64 %x, 1
  %z = add i64 %x, %y
  ret i64 %z
  uselistorder i64 %x, { 1, 0 }
}"""
State = tuple[bytes, tuple[str, ...]]
"""Bitcode, and the leaves that are still to be run on it: all that the result depends on."""


class Passes:
    """Applies actions to a module that is given as bitcode.

    A module goes through bitcode after every pipeline, whether or not the result is known: what follows must not depend
    on what was run before (bitcode does not keep the order of uses). So sequences that meet in a state share the rest.

    Args:
      level: of the pipelines; on functions that ask for minimal size, 2 gives what clang -Oz gives.
    """

    def __init__(self, bitcode: bytes, machine: llvm.TargetMachine, level: int) -> None:
        self._bitcode, self._machine = bitcode, machine
        self._tuning = llvm.create_pipeline_tuning_options(level)
        self._tuning.slp_vectorization = True  # as clang has it: with this, counts are clang's, to the instruction
        self._builder = self._new_builder()
        self._after = lru_cache(_KEPT)(self._piped)
        self._shared: dict[bytes, bytes] | None = {} if text_is_whole() else None

    def run(self, actions: Sequence[str]) -> llvm.ModuleRef:
        """Return a new module: the actions, in their order, applied to the program."""
        return self.finish(self.state(actions))

    def state(self, actions: Sequence[str]) -> State:
        """Return what the actions up to the last pipeline leave, and the leaves behind it."""
        bitcode, waiting = self._bitcode, list[str]()
        for action in actions:
            if action in (FUNCTIONS, MODULE):
                bitcode, waiting = self._after(bitcode, tuple(waiting), action), []
            else:
                waiting.append(action)
        return bitcode, tuple(waiting)

    def finish(self, state: State) -> llvm.ModuleRef:
        """Return a new module: the state with its leaves run."""
        bitcode, names = state
        module = llvm.parse_bitcode(bitcode, llvm.create_context())  # the global one would keep the constants of all
        if names:
            manager = llvm.create_new_module_pass_manager()
            for name in names:
                getattr(manager, f"add_{name}_pass")()
            manager.run(module, self._new_builder())
            manager.close()
        return module

    def _piped(self, bitcode: bytes, names: tuple[str, ...], pipeline: str) -> bytes:
        module = self.finish((bitcode, names))
        if self._shared is None:
            return self._through(module, pipeline)
        text = hashlib.blake2b(f"{pipeline} {module}".encode(), digest_size=16).digest()
        if text not in self._shared:  # different leaves often leave the same
            if len(self._shared) * len(self._bitcode) > _SHARED_BYTES:
                self._shared.clear()
            self._shared[text] = self._through(module, pipeline)
        return self._shared[text]

    def _through(self, module: llvm.ModuleRef, pipeline: str) -> bytes:
        if pipeline == MODULE:
            manager = self._builder.getModulePassManager()
            manager.run(module, self._new_builder())
        else:
            manager = self._builder.getFunctionPassManager()
            for function in module.functions:
                if not function.is_declaration:
                    manager.run(function, self._new_builder())
        manager.close()
        return module.as_bitcode()

    def _new_builder(self) -> llvm.PassBuilder:
        """Return a builder to run with, once: each run adds callbacks to its builder that all later passes call."""
        return llvm.create_pass_builder(self._machine, self._tuning)


@cache
def text_is_whole() -> bool:
    """Ask LLVM to write the order of uses, in this process from now on, and return whether it does.

    With it a module's text is all that passes depend on; without it 1 of 116 modules of equal text gave another result.
    """
    llvm.set_option("", "-preserve-ll-uselistorder")
    return "uselistorder" in str(llvm.parse_assembly(_SWAPPED))
