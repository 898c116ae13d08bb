"""What parts cost: what was measured, models of the rest, and the posterior that a virtual search reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Decomposition, Parts, UserError
from bbo_suite.compiled import compiled_for

from .options import GrayBoxOptions
from .pretraining import PartsOfOthers
from .regressor import LARGEST, FamilyArrays, FamilyModel, ModelArrays, Regressor, correct, predict

compiled = compiled_for(__file__)


_LEAST = 1e-6
"""The smallest cost that models tell from 0, as a share of the first candidate's."""


class PartMemory:
    """The distinct parts seen so far, m in all.

    A part may be measured more than once and differ, because of noise. A part that failed stays a failure.

    Args:
      width: the number f of features.
    """

    def __init__(self, width: int) -> None:
        self._rows: dict[int, int] = {}
        self._features, self._families = np.empty((0, width)), np.empty(0, np.int64)
        self._costs, self._logs, self._repeats = np.empty(0), np.empty(0), np.empty(0)
        self._squares, self._least = 0.0, 0.0

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def keys(self) -> NDArray[np.uint64]:
        """`(m,)`."""
        return np.fromiter(self._rows, np.uint64, len(self))

    @property
    def features(self) -> NDArray[np.float64]:
        """`(m, f)`."""
        return self._features[: len(self)]

    @property
    def families(self) -> NDArray[np.int64]:
        """`(m,)`."""
        return self._families[: len(self)]

    @property
    def repeats(self) -> NDArray[np.float64]:
        """`(m,)` how often each was measured; 0 for a part of a candidate that is not evaluated yet."""
        return self._repeats[: len(self)]

    @property
    def costs(self) -> NDArray[np.float64]:
        """`(m,)` mean costs; inf for a part that failed, nan for one that was not measured."""
        with np.errstate(invalid="ignore"):
            return self._costs[: len(self)] / self.repeats

    @property
    def logs(self) -> NDArray[np.float64]:
        """`(m,)` mean logarithms of costs; inf for a part that failed, nan for one that was not measured."""
        with np.errstate(invalid="ignore"):
            return self._logs[: len(self)] / self.repeats

    @property
    def noise(self) -> float:
        """The variance of the logarithm of a cost between measurements of one part; 0 if all were equal."""
        return self._squares / max(1.0, float(np.maximum(self.repeats - 1, 0).sum()))

    def remember(self, keys: NDArray[np.uint64], features: NDArray[np.float64], families: NDArray[np.int64]) -> None:
        """Add `(k,)` parts that candidates consist of, unless they are known."""
        new = [(row, key) for row, key in enumerate(keys.tolist()) if key not in self._rows]
        for row, key in new:
            place = self._rows.setdefault(key, len(self._rows))
            self._grow(len(self._rows))
            self._features[place], self._families[place] = features[row], families[row]

    def _grow(self, m: int) -> None:
        """Allocate arrays for m parts, and for as many again."""
        if m > len(self._costs):
            more = np.zeros(2 * m - len(self._costs))
            self._costs, self._logs, self._repeats = (
                np.append(array, more) for array in (self._costs, self._logs, self._repeats)
            )
            self._families = np.append(self._families, more.astype(np.int64))
            self._features = np.concatenate([self._features, np.zeros((len(more), self._features.shape[1]))])

    def rows(self, parts: Parts) -> NDArray[np.int64]:
        """Return where the parts of candidates are remembered.

        Raises:
          UserError: one was never met, so it is not a part that the problem describes.
        """
        try:
            return np.fromiter((self._rows[key] for key in parts.keys.tolist()), np.int64, len(parts.keys))
        except KeyError as error:
            raise UserError(
                f"the problem tells the cost of part {error.args[0]:016x}, but does not describe it as a part of these"
                " candidates; `python -m bbo_suite check FILE` tests what a problem describes"
            ) from None

    def learn(self, parts: Parts) -> None:
        """Take the costs of parts that candidates consist of."""
        self._least = self._least or _LEAST * float(parts.sums()[0])
        rows = self.rows(parts)
        logs = np.log(np.maximum(parts.costs, self._least or 1.0))
        self._squares += self._spread(rows, logs)
        for sums, numbers in ((self._costs, parts.costs), (self._logs, logs), (self._repeats, np.ones(len(rows)))):
            sums += np.bincount(rows, numbers, len(sums))

    def _spread(self, rows: NDArray[np.int64], logs: NDArray[np.float64]) -> float:
        """Return by how much the sum of squares within parts grows with new measurements."""
        finite = np.isfinite(logs)
        rows, logs = rows[finite], logs[finite]
        size = len(self._costs)
        n, total = np.bincount(rows, minlength=size), np.bincount(rows, logs, size)
        known = self._repeats > 0
        mean = total / np.maximum(n, 1)
        with np.errstate(invalid="ignore"):
            gap = np.where(known & (n > 0), mean - self._logs / np.maximum(self._repeats, 1), 0.0)
        between = np.where(np.isfinite(gap), gap, 0.0) ** 2 * n * self._repeats / np.maximum(n + self._repeats, 1)
        return float(((logs - mean[rows]) ** 2).sum() + between.sum())


_FEWEST = 20
_CHOSEN_AGAIN, _FITTED_AGAIN = 4.0, 1.3
_SLOTS = 1 << 15
_NO_NOISE = 1e-12


class PartCosts:
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
        self._model = Regressor(self._width, parts.estimate if options.estimate else None, rng)
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

    def posterior(self, penalty: float) -> Posterior:
        """Return the posterior for a batch; a part that failed costs `penalty`."""
        memory, (costs, spreads) = self.memory, self._estimated()
        rows = np.flatnonzero(memory.repeats > 0) if self._options.memory else np.zeros(0, np.int64)
        failed = np.isinf(costs[rows])
        known = memory.keys[rows], np.where(failed, penalty, costs[rows]), spreads[rows], failed
        buffers = np.zeros(1, np.uint64), np.zeros(self._width), np.zeros(2 * LARGEST), np.zeros(3)
        return Posterior(new_table(*known, self._slots), self._model.arrays, self._families.arrays, *buffers)

    def _estimated(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
        """Return the `(n,)` estimated costs of candidates, by those of their parts."""
        costs, _ = self._estimated()
        return replace(parts, costs=costs[self.memory.rows(parts)]).sums()

    def grow(self, posterior: Posterior) -> None:
        """Make the next table larger if this one is crowded."""
        self._slots *= 2 if is_crowded(posterior.table) else 1

    def diagnostics(self) -> dict[str, float]:
        """Return the models' scores, and how well the parts of the last batches were predicted before."""
        pairs = np.array([pair for pair in self._errors[-_JUDGED:] if np.isfinite(pair).all()])
        scores = {f"score/{name}": score for name, score in self._model.scores.items()}
        if len(pairs) > 1 and pairs[:, 1].var() > 0:
            scores["score/unmeasured parts"] = float(1 - ((pairs[:, 0] - pairs[:, 1]) ** 2).mean() / pairs[:, 1].var())
        return scores | {"parts": float((self.memory.repeats > 0).sum())}


_JUDGED = 1000
"""The last new parts, whose predictions are compared with their measurements."""


class Acquisition(NamedTuple):
    """What a search prefers.

    Attributes:
      kappa: standard deviations that are added to the logarithm of each cost: above 0, what is unsure is avoided.
      spread: the weight of a normal deviate for each part, in its standard deviations.
      max_failure_probability: the chance to fail above which a part counts as failing.
      draw: the number of the draw that the deviates belong to.
      penalty: the cost of a part that fails.
      exploitation_penalty: a factor for the costs of measured parts: above 1, new ones are preferred.
    """

    kappa: float
    spread: float
    max_failure_probability: float
    draw: int
    penalty: float
    exploitation_penalty: float


class Posterior(NamedTuple):
    """What all searches of a batch know of parts.

    Attributes:
      table: costs of parts; takes new predictions.
      model: predicts what is not measured.
      families: correct the predictions.
      key, features, kernel, correction: buffers of `part_cost`.
    """

    table: CostTable
    model: ModelArrays
    families: FamilyArrays
    key: NDArray[np.uint64]
    features: NDArray[np.float64]
    kernel: NDArray[np.float64]
    correction: NDArray[np.float64]


@compiled(runtime=False)
def part_cost(
    key_of: Callable[..., Any],
    describe: Callable[..., Any],
    handle: int,
    place: int,
    posterior: Posterior,
    acquisition: Acquisition,
) -> float:
    """Return count times cost of the part at a place; 0 if there is none."""
    count = key_of(handle, place, posterior.key)
    if count == 0.0:
        return 0.0
    table, key = posterior.table, posterior.key[0]
    slot = find(table, key)
    cost, spread, risk, state = table.costs[slot], table.spreads[slot], table.risks[slot], table.states[slot]
    if state == EMPTY:
        describe(handle, place, posterior.features)
        log = predict(posterior.model, posterior.features)
        correct(
            posterior.families, posterior.families.of[place], posterior.features, posterior.kernel, posterior.correction
        )
        cost, spread, risk = (
            np.exp(log + posterior.correction[0]),
            posterior.correction[1] ** 0.5,
            posterior.correction[2],
        )
        if 2 * table.filled[0] < len(table.keys):
            store(table, slot, key, cost, spread, risk, PREDICTED)
    if risk > acquisition.max_failure_probability:
        return count * acquisition.penalty
    if state in (KNOWN, PENDING):
        cost *= acquisition.exploitation_penalty
    if spread > 0.0:
        deviate = 0.0 if state == PENDING else acquisition.spread * normal(key, np.uint64(acquisition.draw))
        cost *= np.exp(spread * (acquisition.kappa + deviate))
    return count * cost


EMPTY, KNOWN, PREDICTED, PENDING = range(4)
_LARGEST = 1 << 20


class CostTable(NamedTuple):
    """An open-addressing hash table; the number of slots is a power of two.

    Attributes:
      keys: `(s,)` of parts.
      costs: `(s,)` the estimated cost.
      spreads: `(s,)` the standard deviation of its logarithm.
      risks: `(s,)` the chance that the part fails.
      states: `(s,)` `EMPTY`, `KNOWN` if measured, `PREDICTED`, or `PENDING` if a candidate with it is to be evaluated.
      filled: `(1,)` slots in use.
    """

    keys: NDArray[np.uint64]
    costs: NDArray[np.float64]
    spreads: NDArray[np.float64]
    risks: NDArray[np.float64]
    states: NDArray[np.int8]
    filled: NDArray[np.int64]


def new_table(
    keys: NDArray[np.uint64],
    costs: NDArray[np.float64],
    spreads: NDArray[np.float64],
    failed: NDArray[np.bool_],
    slots: int,
) -> CostTable:
    """Return a table of measured parts with at least `slots` slots, and at least four for each of these parts."""
    slots = min(max(slots, 4 * len(keys)), max(_LARGEST, 4 * len(keys)))
    slots = 1 << (slots - 1).bit_length()
    costs_, spreads_, risks_ = (np.zeros(slots) for _ in range(3))
    states, filled = np.zeros(slots, np.int8), np.zeros(1, np.int64)
    table = CostTable(np.zeros(slots, np.uint64), costs_, spreads_, risks_, states, filled)
    _measure(table, keys, costs, spreads, failed.astype(np.float64))
    return table


def is_crowded(table: CostTable) -> bool:
    """Return whether the table is half full, so that new predictions are not stored."""
    return 2 * int(table.filled[0]) >= len(table.keys)


@compiled()
def _measure(table: CostTable, keys: NDArray, costs: NDArray, spreads: NDArray, risks: NDArray) -> None:
    for i in range(len(keys)):
        store(table, find(table, keys[i]), keys[i], costs[i], spreads[i], risks[i], KNOWN)


@compiled(runtime=False)
def find(table: CostTable, key: np.uint64) -> np.uint64:
    """Return the slot that holds a key, or the empty one for it."""
    last = np.uint64(len(table.keys) - 1)
    slot = (key ^ (key >> np.uint64(32))) & last
    while table.states[slot] != EMPTY and table.keys[slot] != key:
        slot = (slot + np.uint64(1)) & last
    return slot


@compiled(runtime=False)
def store(
    table: CostTable, slot: np.uint64, key: np.uint64, cost: float, spread: float, risk: float, state: int
) -> None:
    """Write a part to the slot that `find` returned for it."""
    table.filled[0] += table.states[slot] == EMPTY
    table.keys[slot], table.costs[slot], table.spreads[slot] = key, cost, spread
    table.risks[slot], table.states[slot] = risk, state


@compiled(runtime=False)
def normal(key: np.uint64, draw: np.uint64) -> float:
    """Return a nearly normal deviate that depends on a key and on the number of a draw: the sum of four uniforms."""
    bits = scrambled(key ^ scrambled(draw))
    total = 0.0
    for quarter in range(4):
        total += np.float64((bits >> np.uint64(16 * quarter)) & np.uint64(0xFFFF))
    return (total / 65535.0 - 2.0) * 3.0**0.5


@compiled(runtime=False)
def scrambled(number: np.uint64) -> np.uint64:
    """Return other bits for a number (SplitMix64, Steele et al. 2014)."""
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))
