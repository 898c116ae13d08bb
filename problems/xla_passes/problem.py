"""The order of XLA's HLO passes as a problem."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

from numpy.typing import NDArray

from bbo_suite.core.libraries import refusal
from bbo_suite.core.variants import split_variant
from bbo_suite.supervised import Service

from ..packages import installed_version
from ..pass_order.state import PassOrderProblem
from ..tensor_compiler.hlo.passes import EVERY
from ..tensor_compiler.hlo.reader import read_hlo_text
from .census import ACTIONS, MEMORY, OBJECTIVES, OPCODES, OPERATIONS, PIPELINE, SLOTS
from .programs import named, names

OLDEST = "0.10"
"""The first JAX that gives access to the module after XLA's passes."""
_FORMAT = 1
"""Increase it when the cost of a candidate changes."""


class XlaPassesProblem(PassOrderProblem):
    """Which HLO passes XLA:CPU runs, and in what order: `xla-passes/program`, `xla-passes:file.hlo`, also `@kernels`.

    A candidate is a sequence of passes. The XLA in jaxlib runs them one at a time, and stops before layout assignment,
    fusion and code generation. The cost is the number of operations that are left in the entry and in its loops,
    branches and calls, without parameters, constants, tuples and the functions that reductions apply to single numbers.
    Variants count something else: `@computations` with operations, `@kernels` after XLA:CPU's layout assignment and
    fusion, or the `@bytes` that those move if each operand and result moves once. Passes that code generation needs and
    that a candidate leaves out run after it. Layouts that a file names are not kept. The default is the candidate
    `pipeline`: XLA:CPU's own pipeline, repeated until nothing changes. Programs are training steps and inference of ten
    models (`gpt2-l2-infer`: two layers).
    """

    instances: ClassVar[tuple[str, ...]] = names()
    variant_marks: ClassVar[str] = "@"
    actions: ClassVar[tuple[str, ...]] = ACTIONS
    slots: ClassVar[int] = SLOTS
    opcodes: ClassVar[tuple[str, ...]] = OPCODES
    reads_files = True
    decision = "order of XLA's HLO passes"
    costs = "operations, computations, kernels or bytes"
    time_per_candidate = "2 ms to 1 s"

    def __init__(self, instance: str | Path) -> None:
        """Read the program and prepare the compiler.

        Args:
          instance: one of `instances`, or the `Path` of a user's module, in HLO or StableHLO text, plain or gzipped;
            optionally with `@objective`.

        Raises:
          UserError: the file cannot be read, there is no such objective, or JAX is not installed or too old.
        """
        name, variant = split_variant(instance, OBJECTIVES)
        objective = variant or OPERATIONS
        text = read_hlo_text(Path(name) if isinstance(instance, Path) else named(name))
        self.unit = OBJECTIVES[objective].unit  # type: ignore[misc]
        self.tells_parts = objective == OPERATIONS
        self._choose_sequences(PIPELINE)
        compiler = f"jaxlib-{_jaxlib()}"
        content = "|".join((str(_FORMAT), compiler, objective, self.space.digest(), ",".join((*ACTIONS, *EVERY)), text))
        seconds = 30 + 600 * len(text) / (1 << 20)  # tens of times as long as a long sequence takes
        service = Service(
            f"{__package__}.worker:serve", (text, objective), seconds, memory=MEMORY, name=f"XLA on {name}"
        )
        self._serve(service)
        self._identify(content, compiler)

    @classmethod
    def available(cls) -> str:
        """Return whether JAX is missing or too old."""
        return refusal(_jaxlib)

    def paste(self, config: NDArray) -> str:
        """Return a candidate's passes for `hlo-opt --passes`, XLA's tool, which has no name for `pipeline`."""
        names = self.request(config)
        note = f"  # {PIPELINE}: XLA's default pipeline, which has no name in hlo-opt" if PIPELINE in names else ""
        return ",".join(names) + note

    def usage(self) -> str:
        """Return which tool takes the passes."""
        return (
            "`hlo-opt --passes=...` with these passes; build it from XLA's sources, those of jaxlib"
            f" {version('jaxlib')}. JAX has no option for the order of passes"
        )

    def baselines(self) -> dict[str, float]:
        """Return the cost without any pass."""
        return {"only lowered": self.state(()).cost}

    def facts(self) -> dict[str, str]:
        """Return the compiler, the cost without any pass, and the most frequent operations by default."""
        simplified = self.state((PIPELINE,)).kinds
        most = ", ".join(
            f"{kind} {count:,}" for kind, count in sorted(simplified.items(), key=lambda item: -item[1])[:5]
        )
        return {
            "compiler": f"XLA:CPU through jaxlib {version('jaxlib')}, before layouts and fusion",
            f"{self.unit} if only lowered": f"{self.state(()).cost:,.0f}",
            "most operations by default": most,
        }


def _jaxlib() -> str:
    installed_version("jax", OLDEST, "xla-passes/...")
    return installed_version("jaxlib", OLDEST, "xla-passes/...")
