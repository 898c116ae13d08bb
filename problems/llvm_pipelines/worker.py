"""The child process that runs pipelines: it takes a sequence of actions and returns a cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import llvmlite.binding as llvm

from ..llvm.worker import Enter, Optimiser, forbid_processes, prepare
from .library import Pipelines
from .passes import PIPELINES, pipelines

_KEPT = 256
State = tuple[bytes, tuple[str, ...]]
"""A module's text, and the pipelines that are still to be run on it."""


def serve(
    library: str, text: str, fast_text: str, objective: str, seeds: tuple[int, ...], default: tuple[str, ...]
) -> Callable[[Any, Enter], Any]:
    """Return the handler for one program.

    Args:
      library: the path of libLLVM; the other arguments are those of `llvm.worker.serve`.

    Raises:
      ValueError: the program cannot be optimised, or does not end.
    """
    prepare()
    return _Optimiser(
        text, fast_text, objective, seeds, default, forbid_processes, lambda m, *_: NestedPasses(m, library)
    ).answer


class _Optimiser(Optimiser):
    run_seconds = 1.0  # pipelines that make a program hang are frequent


class NestedPasses:
    """Applies actions to a module, and remembers the results of LLVM's own pipelines."""

    def __init__(self, module: llvm.ModuleRef, library: str) -> None:
        self._text = str(module)
        self._llvm = Pipelines(library, module.triple)
        self._after = lru_cache(_KEPT)(self._llvm.run)

    def run(self, actions: Sequence[str]) -> llvm.ModuleRef:
        """Return a new module: the actions, in their order, applied to the program."""
        return self.finish(self.state(actions))

    def state(self, actions: Sequence[str]) -> State:
        """Return the text after the last of LLVM's own pipelines, and the pipeline after it."""
        text, waiting = self._text, pipelines(actions)
        while any(pipeline in PIPELINES for pipeline in waiting):
            text = self._after(text, waiting.pop(0))
        return text.encode(), tuple(waiting)

    def finish(self, state: State) -> llvm.ModuleRef:
        """Return a new module: the state after its pipeline has run."""
        text = state[0].decode()
        for pipeline in state[1]:
            text = self._llvm.run(text, pipeline)
        return llvm.parse_assembly(text, llvm.create_context())  # the global one would keep all constants
