"""Whole pipelines of LLVM as a problem."""

from __future__ import annotations

import dataclasses
import shlex
from typing import Any, ClassVar

from numpy.typing import NDArray

from bbo_suite.core.libraries import refusal
from bbo_suite.supervised import Service

from ..llvm.problem import LlvmProblem
from ..programs_c import large_names
from .library import path, version
from .passes import ACTIONS, FAST, SLOTS, SMALL, pipelines


class PipelineProblem(LlvmProblem):
    """Which of all LLVM's passes run, in what order and nesting: `llvm-pipelines/program`, or `llvm-pipelines:file.ll`.

    A candidate has 32 slots. Each holds a pass with its parameters, or one of LLVM's own pipelines, so that passes run
    before, after or instead of -Oz. Neighbours share a pass manager: passes over loops lie in functions, and functions
    after the inliner in the order of the call graph. LLVM is libLLVM 22. Costs, variants and checks are those of
    `llvm/...`: the instructions that remain, `@bytes` or `@time`, and every optimised program is run. A pipeline that
    crashes or hangs fails alone.
    """

    instances: ClassVar[tuple[str, ...]] = large_names()
    actions: ClassVar[tuple[str, ...]] = ACTIONS
    slots: ClassVar[int] = SLOTS
    decision = "all passes of LLVM, nested, with parameters"
    time_per_candidate = "20 to 500 ms"
    extra = "pipelines"

    @classmethod
    def available(cls) -> str:
        """Return whether llvmlite or libLLVM is missing or of another version."""
        return super().available() or refusal(lambda: version(path()))

    def _default_action(self) -> str:
        return FAST if self._objective == "time" else SMALL

    def _compiler(self) -> str:
        self._library = path()
        return f"{super()._compiler()}-libllvm-{version(self._library)}"

    def _service(self, arguments: tuple[Any, ...]) -> Service:
        service = super()._service(arguments)
        seconds = 10 + 30 * len(arguments[0]) / (1 << 20)  # tens of times as long as the default takes
        given = (self._library, *service.arguments)
        return dataclasses.replace(service, target=f"{__package__}.worker:serve", arguments=given, seconds=seconds)

    def paste(self, config: NDArray) -> str:
        """Return the command line of LLVM's `opt` that runs the same pipelines."""
        force = "force-remove-attribute" if self._objective == "time" else "force-attribute"
        passes = ",".join(["forceattrs", *pipelines(self.request(config))])
        program = shlex.quote(self._unpacked)
        return self._for_machine(f'opt -S -{force}=minsize -{force}=optsize -passes="{passes}" {program}')

    def usage(self) -> str:
        """Return which `opt` runs the command, and what may differ."""
        return (
            super().usage().replace(", which is in", ", or of the libLLVM that this problem uses; results are run by")
        )

    def facts(self) -> dict[str, str]:
        """Return what `llvm/...` returns, for this compiler."""
        return super().facts() | {"compiler": f"LLVM {version(self._library)}, {self._library}"}
