"""What is known of parts: a memory of measurements, and models that are fitted to it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Decomposition, Parts

from .beliefs import Beliefs
from .family_model import LARGEST, FamilyModel
from .options import GrayBoxOptions
from .part_memory import PartMemory
from .part_model import PartModel
from .pretraining import PartsOfOthers
from .price_table import is_crowded, new_table

_FEWEST = 20
_CHOSEN_AGAIN, _FITTED_AGAIN = 4.0, 1.3
_SLOTS = 1 << 15
_NO_NOISE = 1e-12


class PartBeliefs:
    """Learns the costs of parts, and predicts those of others.

    Args:
      parts: the decomposition.
      of: `(p,)` the family of each place.
      options: see `GrayBoxOptions`.
      rng: draws folds, rows and seeds.
    """

    def __init__(self, parts: Decomposition, of: NDArray[np.int64], options: GrayBoxOptions, rng: Generator) -> None:
        self._width, self._options = len(parts.feature_names), options
        self.memory = PartMemory(self._width)
        self._model = PartModel(self._width, parts.estimate if options.estimate else None, rng)
        self._families = FamilyModel(of, self._width)
        self._chosen_at, self._fitted_at, self._slots = 0, 0, _SLOTS
        self._errors: list[tuple[float, float]] = []
        self._others = PartsOfOthers.none(self._width)

    def learn_before(self, others: PartsOfOthers) -> None:
        """Let the model of all parts learn from those of other programs, too."""
        self._others = others
        self._model.fit(others.features, others.logs, True)

    def measured(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the `(m,)` features and log costs of the parts that were measured and work."""
        works = np.isfinite(self.memory.logs)
        return self.memory.features[works], self.memory.logs[works]

    def learn(self, parts: Parts) -> None:
        """Take the costs of parts of candidates, and fit the models."""
        new = self.memory.repeats == 0
        guesses = self._guess(new)
        self.memory.learn(parts)
        self._errors += zip(guesses.tolist(), self.memory.logs[new].tolist(), strict=True)
        m = len(self.memory)
        if self._options.models:
            self._fit(m >= _CHOSEN_AGAIN * self._chosen_at)

    def _guess(self, rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        features = self.memory.features[rows]
        x = self._model.standardised(features)
        return self._model.predict(features) + self._families.predict(x, self.memory.families[rows])

    def _fit(self, choose: bool) -> None:
        memory, m = self.memory, len(self.memory)
        logs = memory.logs
        ran = np.isfinite(logs)
        if ran.sum() >= _FEWEST and (choose or m >= _FITTED_AGAIN * self._fitted_at):
            known = self._others.beside(memory.features[ran], logs[ran])
            self._model.fit(known.features, known.logs, choose)
            self._chosen_at, self._fitted_at = m if choose else self._chosen_at, m
        measured = memory.repeats > 0
        self._families.fit(
            self._model.standardised(memory.features[measured]),
            logs[measured] - self._model.predict(memory.features[measured]),
            memory.families[measured],
            logs[measured],
            memory.noise / memory.repeats[measured],
            float(self._model.arrays.noise[0] ** 2),
            choose,
        )

    def now(self, penalty: float) -> Beliefs:
        """Return beliefs for a batch; a part that failed costs `penalty`."""
        memory, (costs, spreads) = self.memory, self._believed()
        rows = np.flatnonzero(memory.repeats > 0) if self._options.memory else np.zeros(0, np.int64)
        failed = np.isinf(costs[rows])
        known = memory.keys[rows], np.where(failed, penalty, costs[rows]), spreads[rows], failed
        rooms = np.zeros(1, np.uint64), np.zeros(self._width), np.zeros(LARGEST), np.zeros(3)
        return Beliefs(new_table(*known, self._slots), self._model.arrays, self._families.arrays, *rooms)

    def _believed(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the `(m,)` costs of parts and the standard deviations of their logarithms.

        Under noise, a part's mean is shrunk to what the other parts of its family say of it.
        """
        memory, costs = self.memory, self.memory.costs
        spreads = np.zeros(len(costs))
        if memory.noise <= _NO_NOISE or not len(self._families.rows):
            return costs, spreads
        rows = np.flatnonzero(memory.repeats > 0)[self._families.rows]
        gaps, variances = self._families.left_out()
        own = memory.noise / memory.repeats[rows]
        others = np.maximum(variances - own, _NO_NOISE)
        costs[rows] *= np.exp(-gaps * own / (own + others))
        spreads[rows] = np.sqrt(own * others / (own + others))
        return costs, spreads

    def totals(self, parts: Parts) -> NDArray[np.float64]:
        """Return the `(n,)` costs that candidates are believed to have, by those of their parts."""
        costs, _ = self._believed()
        return replace(parts, costs=costs[self.memory.rows(parts)]).sums()

    def grow(self, beliefs: Beliefs) -> None:
        """Make the next table larger if this one is crowded."""
        self._slots *= 2 if is_crowded(beliefs.table) else 1

    def diagnostics(self) -> dict[str, float]:
        """Return the models' scores, and how well the parts of the last batches were predicted before."""
        pairs = np.array([pair for pair in self._errors[-_JUDGED:] if np.isfinite(pair).all()])
        scores = {f"score/{name}": score for name, score in self._model.scores.items()}
        if len(pairs) > 1 and pairs[:, 1].var() > 0:
            scores["score/unmeasured parts"] = float(1 - ((pairs[:, 0] - pairs[:, 1]) ** 2).mean() / pairs[:, 1].var())
        return scores | {"parts": float((self.memory.repeats > 0).sum())}


_JUDGED = 1000
"""The last new parts, whose predictions are compared with their measurements."""
