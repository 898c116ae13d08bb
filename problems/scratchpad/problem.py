"""The family of problems about programs under a small fast memory."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from numpy.typing import NDArray

from bbo_suite import Evaluations, Problem, Structure

from .network.networks import INSTANCES

if TYPE_CHECKING:
    from .model import Model


class ScratchpadProblem(Problem):
    """How a program runs when only a part of its data fits into fast memory.

    `scratchpad/bert@2MiB` is a network of ours. Decisions are the tiles, loops and buffers of each operator, which
    operators run block by block together, which tensors stay in the scratchpad, how tensors are stored, and which
    movements of data are eliminated. The cost is the bytes that move from and to DRAM. The default is what a compiler
    finds that takes one kind of decision after another. With `@banks` at the end, candidates also decide which
    dimension of each tensor lies across the banks of the scratchpad. `scratchpad:FILE` reads a problem of the MLSys
    2026 contest: which operations run as one group, on which tiles and in which order, and what stays in fast memory
    between groups. Its default runs each operation alone.
    """

    variant_marks: ClassVar[str] = ""
    instances: ClassVar[tuple[str, ...]] = INSTANCES
    reads_files = True
    decision = "schedule of a whole program under a small memory"
    costs = "bytes or time units"
    time_per_candidate = "5 to 60 µs"

    def __init__(self, instance: str | Path) -> None:
        """Load an instance.

        Args:
          instance: the name of a network of ours, or the `Path` of a file of the contest.

        Raises:
          UserError: the file cannot be used.
        """
        self._model = _model(instance)
        self.space, self.default, self.unit = self._model.space, self._model.default, self._model.unit  # type: ignore[misc]
        self.bound, self.published_in = self._model.bound, self._model.published_in

    def evaluate(self, configs: NDArray) -> Evaluations:
        """Return the costs of `(n, d)` candidates; none fails."""
        return self._model.evaluate(configs, with_parts=False)

    def evaluate_parts(self, configs: NDArray) -> Evaluations:
        """Return the costs, and those of groups."""
        return self._model.evaluate(configs, with_parts=True)

    def structure(self) -> Structure:
        """Return which decisions interact."""
        return self._model.structure()

    def paste(self, config: NDArray) -> str:
        """Return a candidate as a schedule."""
        return self._model.paste(config)

    def usage(self) -> str:
        """Return what to do with a schedule."""
        return self._model.usage()

    def fingerprint(self) -> str:
        """Return a text that changes with the content of the instance, the space and the default."""
        content = f"{self._model.content}|{self.space.digest()}|{self.space.pack(self.default_row())}"
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def facts(self) -> dict[str, str]:
        """Return the size of the instance."""
        return self._model.facts()

    def baselines(self) -> dict[str, float]:
        """Return costs that others reached."""
        return self._model.baselines()


def _model(instance: str | Path) -> Model:
    from .network.model import NetworkModel  # they import numba, which is slow: only when an instance is loaded
    from .schedule.model import ScheduleModel

    return ScheduleModel(instance) if isinstance(instance, Path) else NetworkModel(instance)
