"""Runs sequences of passes on one module, and remembers the results of pipelines."""

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
"""Bitcode, and the single passes that are still to be run on it: all that the result depends on."""


class Passes:
    """Applies actions to a module that is given as bitcode.

    After every pipeline the module is written to bitcode and read again, even if the result is known already. Bitcode
    does not keep the order of uses, so without this the later passes would depend on what was remembered. Sequences
    that reach the same state share the rest.

    Args:
      level: optimisation level of the pipelines; 2, with functions that ask for minimal size, is clang's -Oz.
    """

    def __init__(self, bitcode: bytes, machine: llvm.TargetMachine, level: int) -> None:
        self._bitcode, self._machine = bitcode, machine
        self._tuning = llvm.create_pipeline_tuning_options(level)
        self._tuning.slp_vectorization = True  # as in clang: with it the counts agree to the instruction
        self._builder = self._new_builder()
        self._after = lru_cache(_KEPT)(self._piped)
        self._shared: dict[bytes, bytes] | None = {} if text_is_whole() else None

    def run(self, actions: Sequence[str]) -> llvm.ModuleRef:
        """Return a new module: the actions, in their order, applied to the program."""
        return self.finish(self.state(actions))

    def state(self, actions: Sequence[str]) -> State:
        """Return the bitcode after the last pipeline of the actions, and the single passes after it."""
        bitcode, waiting = self._bitcode, list[str]()
        for action in actions:
            if action in (FUNCTIONS, MODULE):
                bitcode, waiting = self._after(bitcode, tuple(waiting), action), []
            else:
                waiting.append(action)
        return bitcode, tuple(waiting)

    def finish(self, state: State) -> llvm.ModuleRef:
        """Return a new module: the state after its single passes have run."""
        bitcode, names = state
        module = llvm.parse_bitcode(bitcode, llvm.create_context())  # the global one would keep all constants
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
        if text not in self._shared:  # different passes often give the same module
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
        """Return a builder for one run: each run adds callbacks to its builder, which all later passes would call."""
        return llvm.create_pass_builder(self._machine, self._tuning)


@cache
def text_is_whole() -> bool:
    """Make LLVM write the order of uses in this process from now on, and return whether it does.

    With it, passes depend on a module's text alone; without it, 1 of 116 modules of equal text gave another result.
    """
    llvm.set_option("", "-preserve-ll-uselistorder")
    return "uselistorder" in str(llvm.parse_assembly(_SWAPPED))
