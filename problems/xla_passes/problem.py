"""The order of XLA's HLO passes as a problem."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bbo_suite import product, sequence
from bbo_suite.supervised import Cache, LiveProblem, Service

from ..packages import installed_version
from ..tensor_compiler.hlo.reader import read_hlo_text
from .actions import ACTIONS, CENSUS, EVERY, MEMORY, NOTHING, PIPELINE, SLOTS
from .programs import named, names

OLDEST = "0.10"
"""The first JAX that gives access to the module after XLA's passes."""
_FORMAT = 1
"""Increase it when the cost of a candidate changes."""


class XlaPassesProblem(LiveProblem):
    """Which HLO passes XLA:CPU runs, and in what order: `xla-passes/program`, or `xla-passes:file.hlo`.

    A candidate is a sequence of passes. The XLA in jaxlib runs them one at a time, and stops before layout assignment,
    fusion and code generation. The cost is the number of operations that are left in the entry and in its loops,
    branches and calls, without parameters, constants, tuples and the functions that reductions apply to single numbers.
    Passes that code generation needs and that a candidate leaves out run after it. The default is the candidate
    `pipeline`: XLA:CPU's own pipeline, repeated until nothing changes. Programs are training steps of GPT-2 and BERT
    (`l2`: two layers) and of ResNet.
    """

    instances: ClassVar[tuple[str, ...]] = names()
    unit = "operations"
    tells_parts = True

    def __init__(self, instance: str | Path) -> None:
        """Read the program and prepare the compiler.

        Args:
          instance: one of `instances`, or the `Path` of a user's module.

        Raises:
          UserError: the file cannot be read, or JAX is not installed or too old.
        """
        text = read_hlo_text(instance if isinstance(instance, Path) else named(instance))
        self.space = product(sequence("pass", SLOTS, ACTIONS))
        self.default = np.full(SLOTS, ACTIONS.index(NOTHING))
        self.default[0] = ACTIONS.index(PIPELINE)
        installed_version("jax", OLDEST, "xla-passes/...")
        compiler = f"jaxlib-{installed_version('jaxlib', OLDEST, 'xla-passes/...')}"
        content = "|".join((str(_FORMAT), compiler, self.space.digest(), ",".join((*ACTIONS, *EVERY)), text))
        self._content = hashlib.sha256(content.encode()).hexdigest()[:16]
        seconds = 30 + 600 * len(text) / (1 << 20)  # tens of times as long as a long sequence takes
        service = Service(f"{__package__}.worker:serve", (text,), seconds, memory=MEMORY, name=f"XLA on {instance}")
        self._serve(service, Cache(compiler, self._content))

    @classmethod
    def from_file(cls, path: str) -> Self:
        """Return the task on a user's module, in HLO or StableHLO text, plain or gzipped.

        Raises:
          UserError: it cannot be read.
        """
        return cls(Path(path))

    def request(self, config: NDArray) -> tuple[str, ...]:
        """Return the names of a candidate's actions, without those that do nothing."""
        return tuple(ACTIONS[i] for i in config.tolist() if ACTIONS[i] != NOTHING)

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

    def fingerprint(self) -> str:
        """Return a text that changes with the program, the actions and the version of jaxlib."""
        return self._content

    def baselines(self) -> dict[str, float]:
        """Return the operations without any pass."""
        return {"only lowered": float(self.ask((CENSUS, ()))[0])}

    def facts(self) -> dict[str, str]:
        """Return the compiler, the operations without any pass, and the most frequent ones by default."""
        lowered, _ = self.ask((CENSUS, ()))
        _, simplified = self.ask((CENSUS, (PIPELINE,)))
        most = ", ".join(
            f"{kind} {count:,}" for kind, count in sorted(simplified.items(), key=lambda item: -item[1])[:5]
        )
        return {
            "compiler": f"XLA:CPU through jaxlib {version('jaxlib')}, before layouts and fusion",
            "operations if only lowered": f"{lowered:,.0f}",
            "most operations by default": most,
        }
