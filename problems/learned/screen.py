"""Costs that a learned model predicts for candidates of the simulated compiler; they cost no evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bbo_suite import UserError
from bbo_suite.core.versions import content

from ..tensor_compiler.fusion.fusion_pass import CandidateKernels
from ..tensor_compiler.hardware.all_settings import times
from ..tensor_compiler.hardware.kernel_settings import FLAG_SLOTS, compile_kernels
from ..tensor_compiler.hardware.machine import Machine
from .dataset import SHIPPED, choose
from .kernels import SIZES, KernelGraphs, KernelReader, features
from .model import CostModel, embeddings, load, relative_scores, scores


def read_model(name: str, program: str, machine: str) -> CostModel:
    """Return the model in a file, or the one that ships if the name is `learned`, for a program on a machine.

    Args:
      program: its name in the catalogue; empty for a user's file.

    Raises:
      UserError: the file cannot be read or is no model, or the model was trained on the program or for another machine.
    """
    try:
        path, data = content(str(SHIPPED) if name == "learned" else name)
    except UserError as error:
        raise UserError(f"{error}; a model is estimate, learned, or a file of `bbo_problems.learned train`") from None
    model = load(data, path)
    if model.machine != machine:
        raise UserError(f"model {path} is for {model.machine}, not {machine}; train one on data of that machine")
    if program in model.programs:
        raise UserError(f"model {path} was trained on {program}, so it has seen costs of it; train one without it")
    return model


class LearnedScreen:
    """Predicts the costs of candidates.

    Args:
      model: predicts kernels.
      machine: what they run on.
      reader: of the program's kernels.
      compile: compiles a `(d,)` candidate.
    """

    def __init__(
        self, model: CostModel, machine: Machine, reader: KernelReader, compile: Callable[[NDArray], CandidateKernels]
    ) -> None:
        self._times, self._reader, self._compile = PredictedTimes(model, machine), reader, compile

    def __call__(self, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(n,)` predicted seconds of `(n, d)` candidates; inf if the windows of a kernel overflow."""
        numbers, runs, values, new = [], [], [], []
        for config in configs:
            made = self._compile(config)
            own, unknown = self._times.numbers(made.rows)
            if len(unknown):
                new.append(self._reader.read(made.laid, made.fusion, made.result[unknown]))
            numbers.append(own)
            runs.append(made.runs)
            values.append(made.values)
        if new:
            self._times.learn(KernelGraphs.joined(new))
        every, counts = np.concatenate(numbers), np.concatenate(runs)
        owners = np.repeat(np.arange(len(configs)), [len(own) for own in numbers])
        return np.bincount(owners, counts * self._seconds(every, values), len(configs)).astype(np.float64)

    def _seconds(self, numbers: NDArray[np.int64], values: Sequence[NDArray[np.float64] | None]) -> NDArray[np.float64]:
        settings = [own for own in values if own is not None]
        return self._times.seconds(numbers, np.concatenate(settings) if settings else None)


class PredictedTimes:
    """The predicted seconds of kernels with any settings.

    The absolute model says how long a kernel takes with the compiler's own tile and flags. The relative models say by
    which factor another tile changes that, and then other flags. A kernel that is too large for the networks is
    represented by the operations nearest to its result; an operation that was never seen counts as unknown.
    """

    def __init__(self, model: CostModel, machine: Machine) -> None:
        self._model, self._machine = model, machine
        self._number: dict[bytes, int] = {}
        self._new: list[NDArray[np.float64]] = []
        self._rows, self._chosen = np.empty((0, 0)), np.empty((0, 0))
        self._absolute, self._embedded = np.empty(0), np.empty((0, 0), np.float32)
        self._ratios: dict[bytes, float] = {}

    def numbers(self, rows: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the `(k,)` numbers of kernels, and the places of those whose graphs `learn` needs next."""
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
        """Take the graphs of the new kernels, in the order of their numbers."""
        rows, self._new = np.array(self._new), []
        own = choose(rows, np.ones(len(rows)), self._machine)
        small = graphs.cut(SIZES[-1])
        described = features(rows, own.values, own.estimates, self._model.machine)
        logs = scores(self._model.absolute, "graph", embeddings(self._model.absolute, small), described, own.estimates)
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
        fits = np.isfinite(times(self._rows, numbers, values, self._machine.analytical_model()))
        return np.where(fits, np.exp(logs), np.inf)

    def _scores(self, kind: str, numbers: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
        rows, embedded = self._rows[numbers], self._embedded[numbers]
        return relative_scores(self._model, kind, rows, embedded, values, self._machine)
