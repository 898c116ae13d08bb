"""Runs sequences of passes on one module; long common starts are not run twice."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import llvmlite.binding as llvm

from .actions import FUNCTIONS, MODULE

_KEPT = 256


class Passes:
    """Applies actions to a module that is given as bitcode.

    A module goes through bitcode after every pipeline, whether or not the result is kept for sequences that start
    alike: what follows must not depend on what was run before (bitcode does not keep the order of uses).

    Args:
      level: of the pipelines; on functions that ask for minimal size, 2 gives what clang -Oz gives.
    """

    def __init__(self, bitcode: bytes, machine: llvm.TargetMachine, level: int) -> None:
        self._bitcode = bitcode
        self._kept: OrderedDict[tuple[str, ...], bytes] = OrderedDict()
        tuning = llvm.create_pipeline_tuning_options(level)
        tuning.slp_vectorization = True  # as clang has it: with this, counts are clang's, instruction for instruction
        self._builder = llvm.create_pass_builder(machine, tuning)

    def run(self, actions: Sequence[str]) -> llvm.ModuleRef:
        """Return a new module: the actions, in their order, applied to the program."""
        done, bitcode = self._longest_start(tuple(actions))
        module, waiting = llvm.parse_bitcode(bitcode), []
        for number, action in enumerate(actions[done:], done + 1):
            if action not in (FUNCTIONS, MODULE):
                waiting.append(action)
                continue
            self._leaves(module, waiting)
            waiting = []
            self._pipeline(module, action)
            module = llvm.parse_bitcode(self._keep(tuple(actions[:number]), module.as_bitcode()))
        self._leaves(module, waiting)
        return module

    def _longest_start(self, actions: tuple[str, ...]) -> tuple[int, bytes]:
        for length in range(len(actions), 0, -1):
            if actions[:length] in self._kept:
                self._kept.move_to_end(actions[:length])
                return length, self._kept[actions[:length]]
        return 0, self._bitcode

    def _keep(self, start: tuple[str, ...], bitcode: bytes) -> bytes:
        self._kept[start] = bitcode
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return bitcode

    def _leaves(self, module: llvm.ModuleRef, names: Sequence[str]) -> None:
        if not names:
            return
        manager = llvm.create_new_module_pass_manager()
        for name in names:
            getattr(manager, f"add_{name}_pass")()
        manager.run(module, self._builder)
        manager.close()

    def _pipeline(self, module: llvm.ModuleRef, action: str) -> None:
        if action == MODULE:
            manager = self._builder.getModulePassManager()
            manager.run(module, self._builder)
        else:
            manager = self._builder.getFunctionPassManager()
            for function in module.functions:
                if not function.is_declaration:
                    manager.run(function, self._builder)
        manager.close()
