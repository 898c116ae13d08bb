"""The order of LLVM's passes as a problem."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from numpy.typing import NDArray

from bbo_suite.core.libraries import refusal
from bbo_suite.core.variants import split_variant
from bbo_suite.supervised import Service

from ..packages import installed_version
from ..pass_order.state import PassOrderProblem
from ..programs_c import SEEDS
from .actions import ACTIONS, MODULE, SLOTS, command
from .ir import FOLDER, SOURCES, argument, lowering, names, read, shipped, without_size
from .machine_code import OPCODES

OBJECTIVES = {"instructions": "instructions", "bytes": "bytes", "time": "times the default"}
"""Each objective and its unit."""
OLDEST = "0.49"
"""The first llvmlite whose LLVM compiles the shipped programs without an abort."""
_TRIPLE = re.compile('^target triple = "[^"]', re.MULTILINE)
_FORMAT = 1
"""Increase it when the cost of a candidate changes."""
_CHECKS = 2
"""Increase it when another candidate counts as wrong, so that no cached outcome is used."""


class LlvmProblem(PassOrderProblem):
    """Which passes LLVM runs, and in what order: `llvm/program`, or `llvm:file.ll`, also with `@bytes` or `@time`.

    A candidate is a sequence. Each slot holds a pass, the pipeline that simplifies functions, or the whole default
    pipeline. The cost is the number of instructions of the optimised module, the bytes of its machine code, or the
    processor time of a call over that of the default, both measured in turns; equal code is measured once. The default
    is the default pipeline alone: -Oz, or -O3 for time. Every optimised program is run, and if its results differ from
    those of the unoptimised program, it is a wrong result: what `i64 @run(i64)` returns, or what `main` prints.
    """

    variant_marks: ClassVar[str] = "@"
    instances: ClassVar[tuple[str, ...]] = names()
    actions: ClassVar[tuple[str, ...]] = ACTIONS
    slots: ClassVar[int] = SLOTS
    opcodes: ClassVar[tuple[str, ...]] = OPCODES
    reads_files = True
    decision = "order of LLVM's passes"
    costs = "instructions, bytes, or time over the default's"
    time_per_candidate = "10 to 50 ms"

    def __init__(self, instance: str | Path) -> None:
        """Read the program and prepare the compiler.

        Args:
          instance: the name of a program that ships, or the `Path` of a user's module; optionally with `@objective`.

        Raises:
          UserError: the file cannot be read, or there is no such objective.
        """
        name, variant = split_variant(instance, OBJECTIVES)
        objective = variant or "instructions"
        text = read(Path(name)) if isinstance(instance, Path) else shipped(name)
        self.unit = OBJECTIVES[objective]  # type: ignore[misc]
        self.noisy = self.timed = objective == "time"
        self.tells_parts = not self.timed
        self.statistics = ("bytes of code", "functions", *OPCODES) if self.timed else ()
        self._name, self._objective, self._names_machine = name, objective, bool(_TRIPLE.search(text))
        self._choose_sequences(self._default_action())
        compiler = self._compiler()
        form = f"{_FORMAT} in turns" if self.timed else str(_FORMAT)
        content = "|".join((form, compiler, objective, self.space.digest(), ",".join(self.actions), text))
        self._serve(self._service((text, without_size(text), objective, SEEDS, (self._default_action(),))))
        self._identify(content, "" if self.noisy else f"{compiler}-{_CHECKS}")

    def _default_action(self) -> str:
        return MODULE

    @classmethod
    def available(cls) -> str:
        """Return whether llvmlite is missing or too old."""
        return refusal(_llvmlite)

    def _compiler(self) -> str:
        """Return the name and version of the compiler."""
        return f"llvmlite-{_llvmlite()}"

    def _service(self, arguments: tuple[Any, ...]) -> Service:
        seconds = 20 + 60 * len(arguments[0]) / (1 << 20)  # hundreds of times as long as the default takes
        name = f"LLVM on {self._name}"
        return Service(f"{__package__}.worker:serve", arguments, seconds, name=name, confined=True)

    def ratios(self, config: NDArray, reference: NDArray | str, first: int, count: int) -> Sequence[float]:
        """Return logarithms of ratios of two candidates' times, measured in turns; none if the cost is no time."""
        if not self.timed or isinstance(reference, str):
            return ()
        return self._ratios(self.request(config), self.request(reference), first, count)

    def paste(self, config: NDArray) -> str:
        """Return the command line of LLVM's `opt` that runs the same passes.

        A count may differ, because `opt` does not write and read the module between pipelines, as this problem does.
        """
        return self._for_machine(command(self.request(config), self._objective == "time", self._unpacked))

    def _for_machine(self, command: str) -> str:
        """Return a command of `opt` with this machine if the module names none: `opt` would know no costs."""
        import llvmlite.binding as llvm

        chosen = "" if self._names_machine else f"-mtriple={llvm.get_process_triple()} "
        return command.replace("opt -S ", f"opt -S {chosen}", 1)

    @property
    def _unpacked(self) -> str:
        """The path of the program as `opt` reads it: not gzipped."""
        if self._name.endswith(SOURCES):
            return argument(f"{Path(self._name).stem}.ll")
        return self._name.removesuffix(".gz") if self._name.endswith((".ll", ".gz")) else f"{self._name}.ll"

    def usage(self) -> str:
        """Return which `opt` runs the command, and what may differ."""
        if self._name.endswith(SOURCES):
            words = ["python", "-m", "ziglang", *lowering(Path(self._name)), self._unpacked]
            return f"{shlex.join(words)}, and then this command{self._tool()}"
        packed = self._name if self._name.endswith((".ll", ".gz")) else str(FOLDER / f"{self._name}.ll.gz")
        unpack = f", after `gunzip -c {shlex.quote(packed)} > {shlex.quote(self._unpacked)}`"
        return f"this command{unpack if packed.endswith('.gz') else ''}{self._tool()}"

    def _tool(self) -> str:
        return (
            f", with `opt` of LLVM {llvm_version()}, which is in llvmlite {version('llvmlite')}; another version may"
            " name passes otherwise. Give the result to `llc -filetype=obj` or `clang -c`"
        )

    def baselines(self) -> dict[str, float]:
        """Return the instructions or bytes at -O3."""
        return {} if self.timed else {"-O3": float(self.query("facts")["cost at -O3"])}

    def facts(self) -> dict[str, str]:
        """Return the compiler, the program's size before and after -O3, and whether results are compared."""
        known: dict[str, Any] = self.query("facts")
        compared = "run, and its output compared with that" if known["main"] else "run and compared with those"
        why_not = known["why not run"]
        return {
            "compiler": f"LLVM through llvmlite {version('llvmlite')}",
            "default is": "-O3" if self._objective == "time" else "-Oz",
            "instructions before": f"{known['instructions']:,}",
            "instructions at -O3": f"{known['-O3']:,}",
            "results": f"NOT run: {why_not}" if why_not else f"{compared} of the unoptimised program",
        }


def _llvmlite() -> str:
    return installed_version("llvmlite", OLDEST, "llvm/...")


def llvm_version() -> str:
    """Return the version of the LLVM in llvmlite."""
    from llvmlite.binding import llvm_version_info

    return ".".join(map(str, llvm_version_info))
