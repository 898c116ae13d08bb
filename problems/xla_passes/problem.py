"""The order of XLA's HLO passes as a task."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bbo_suite import product, sequence
from bbo_suite.supervised import Cache, LiveProblem, Service

from ..packages import installed
from ..tensor_compiler.hlo.reader import read_hlo_text
from .actions import ACTIONS, CENSUS, EVERY, MEMORY, NOTHING, PIPELINE, SLOTS
from .programs import named, names

OLDEST = "0.10"
"""The first JAX that hands out what XLA's passes made."""
_FORMAT = 1
"""Raised when the same candidate would cost something else."""


class XlaPassesProblem(LiveProblem):
    """Which HLO passes XLA:CPU runs and in what order: `xla-passes/program`, or `xla-passes:file.hlo`.

    A candidate is a sequence of passes, run one at a time by the XLA in jaxlib and stopped before layouts, fusion and
    code generation. Counted are the operations that are left: of the entry and of loops, branches and calls in it, but
    neither parameters, constants and tuples nor what a reduction applies to single numbers. What code generation needs
    and a candidate has left out is run behind it. The default is XLA:CPU's own pipeline, again until nothing changes:
    the candidate `pipeline`. Programs are training steps of GPT-2 and BERT (`l2`: two layers) and of ResNet.
    """

    instances: ClassVar[tuple[str, ...]] = names()
    unit = "operations"

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
        installed("jax", OLDEST, "xla-passes/...")
        compiler = f"jaxlib-{installed('jaxlib', OLDEST, 'xla-passes/...')}"
        content = "|".join((str(_FORMAT), compiler, self.space.digest(), ",".join((*ACTIONS, *EVERY)), text))
        self._content = hashlib.sha256(content.encode()).hexdigest()[:16]
        seconds = 30 + 600 * len(text) / (1 << 20)  # tens of times what a long sequence takes
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
        """Return a candidate's passes as XLA's tool `hlo-opt --passes` takes them; it has no word for `pipeline`."""
        names = self.request(config)
        note = f"  # {PIPELINE}: XLA's default pipeline, for which hlo-opt has no word" if PIPELINE in names else ""
        return ",".join(names) + note

    def fingerprint(self) -> str:
        """Return a text that changes with the program, the actions and the version of jaxlib."""
        return self._content

    def facts(self) -> dict[str, str]:
        """Return the compiler, and the operations without any choice."""
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
