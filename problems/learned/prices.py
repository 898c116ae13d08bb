"""What a learned model predicts for kernels, remembered: a search meets the same ones again and again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..tensor_compiler.hardware.kernel_settings import FLAG_SLOTS, compile_kernels, seconds_of_kernels
from ..tensor_compiler.hardware.machine import Machine
from .batches import SIZES
from .features import features
from .kernels import KernelGraphs
from .model_file import CostModel
from .prediction import embeddings, scores
from .settings import choose


class Prices:
    """The predicted seconds of kernels with any settings.

    The absolute model says how long a kernel takes with the compiler's own tile and flags. The relative models say by
    which factor another tile changes that, and then other flags. A kernel that is too large for the networks is
    represented by the operations nearest to its result; an operation that was never seen counts as unknown.
    """

    def __init__(self, model: CostModel, machine: Machine) -> None:
        self._model, self._machine, self._paper = model, machine, machine.analytical_model().array()
        self._number: dict[bytes, int] = {}
        self._new: list[NDArray[np.float64]] = []
        self._rows, self._chosen = np.empty((0, 0)), np.empty((0, 0))
        self._absolute, self._embedded = np.empty(0), np.empty((0, 0), np.float32)
        self._ratios: dict[bytes, float] = {}

    def numbers(self, rows: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the `(k,)` numbers of kernels, and the places of those whose graphs `learn` has to be given next."""
        found, unknown = np.empty(len(rows), np.int64), []
        for place, row in enumerate(rows):
            key = row.tobytes()
            if key not in self._number:
                self._number[key] = len(self._number)
                self._new.append(row)
                unknown.append(place)
            found[place] = self._number[key]
        return found, np.array(unknown, np.int64)

    def learn(self, graphs: KernelGraphs) -> None:
        """Take the graphs of the new kernels, in the order in which they were met."""
        rows, self._new = np.array(self._new), []
        own = choose(rows, np.ones(len(rows)), self._machine)
        small = graphs.cut(SIZES[-1])
        given = features(rows, own.values, own.estimates, self._model.machine)
        logs = scores(self._model.absolute, "graph", embeddings(self._model.absolute, small), given, own.estimates)
        first = not len(self._absolute)
        for name, array in (
            ("_rows", rows),
            ("_chosen", compile_kernels(rows, np.ones(len(rows)), self._machine).chosen),
            ("_absolute", np.exp(logs)),
            ("_embedded", embeddings(self._model.relative, small)),
        ):
            setattr(self, name, array if first else np.concatenate([getattr(self, name), array]))

    def seconds(self, numbers: NDArray[np.int64], values: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """Return the `(m,)` predicted seconds of kernels, inf if their windows overflow.

        Args:
          values: `(m, 9)` settings, in the order of `SLOTS`; None for the compiler's own.
        """
        absolute = self._absolute[numbers]
        if values is None:
            return absolute
        tuned = np.flatnonzero((values != self._chosen[numbers]).any(axis=1))
        absolute[tuned] *= self._known_ratios(numbers[tuned], values[tuned])
        return absolute

    def _known_ratios(self, numbers: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
        keys = [row.tobytes() for row in np.column_stack([numbers.astype(np.float64), values])]
        new = {key: place for place, key in enumerate(keys) if key not in self._ratios}
        if new:
            places = np.array([*new.values()])
            self._ratios |= zip(new, self._factors(numbers[places], values[places]).tolist(), strict=True)
        return np.array([self._ratios[key] for key in keys])

    def _factors(self, numbers: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return by which factor settings change the time that the compiler's own take."""
        own, slopes = self._chosen[numbers], self._model.slopes
        tiled = own.copy()
        tiled[:, : FLAG_SLOTS.start] = values[:, : FLAG_SLOTS.start]
        logs = slopes[0] * (self._scores("tiles", numbers, tiled) - self._scores("tiles", numbers, own))
        logs += slopes[1] * (self._scores("flags", numbers, values) - self._scores("flags", numbers, tiled))
        return np.where(np.isfinite(self._estimates(numbers, values)), np.exp(logs), np.inf)

    def _scores(self, kind: str, numbers: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
        estimates = self._estimates(numbers, values)
        estimates = np.where(np.isfinite(estimates), estimates, 1.0)  # it overflows: its score is not used
        given = features(self._rows[numbers], values.astype(np.float32), estimates, self._model.machine)
        return scores(self._model.relative, kind, self._embedded[numbers], given, estimates)

    def _estimates(self, numbers: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
        none, seconds = np.zeros(0, np.int64), np.empty((1, len(numbers)))
        rows, own = np.ascontiguousarray(self._rows[numbers]), np.ascontiguousarray(values)
        starts = np.zeros(len(numbers) + 1, np.int64)
        seconds_of_kernels(np.zeros((1, 0), np.int64), none, np.zeros((0, 0)), starts, rows, own, self._paper, seconds)
        return seconds[0]
