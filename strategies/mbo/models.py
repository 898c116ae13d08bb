"""What `mbo` learns: an ensemble of regressors, the features of changes that they see, and which neighbours fail."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Kind, Space, Task

from .. import regressors
from ..regressors import Predictor

FEWEST = 40
"""The smallest number of rows to which models are fitted."""

_ROWS = 1500
_GROWTH, _STEP = 1.5, 750

_NARROW = 128
_RATE = 0.2

_PRIOR = 0.2  # chance that an untried pair fails, once anything failed: four such pairs fail more often than not
_RUN = 6.0  # failures that outweigh one success of a pair: a failed candidate has other suspect pairs, too
_EM_STEPS = 3  # steps of EM for each batch; it continues from the last estimate
_SUSPECTS = 10_000  # the most pairs that are suspected, those of the latest failures
_TABLE = 1_000_000  # pairs in the table; sequences beyond it are assumed never to fail


class Ensemble:
    """The selected regressors, and the rows that they learn from.

    The publication fits to all data in every round, at a cost that grows with the data. Here models are scored,
    selected and fitted when the data has grown by half, later every `_STEP` rows, on the last `_ROWS` rows. What a
    change gains depends on the state of the search, so old rows would mislead.

    Args:
      threshold: lowest score with which a regressor is selected.
      folds: of the cross-validation.
      rng: draws the folds and the seeds of the regressors.

    Attributes:
      scores: mean R^2 in the last cross-validation, by regressor.
      members: the selected regressors, fitted.
      no_gain: the target of a change that gains nothing.
      fits: how often they were fitted.
    """

    def __init__(self, threshold: float, folds: int, rng: Generator) -> None:
        self._threshold, self._folds, self._rng = threshold, folds, rng
        self._features, self._values = np.zeros((0, 0), np.float32), np.zeros(0)
        self._seen, self._due = 0, FEWEST
        self.no_gain, self.fits = 0.0, 0
        self.scores: dict[str, float] = {}
        self.members: dict[str, Predictor] = {}

    def learn(self, features: NDArray[np.float32], values: NDArray[np.float64]) -> None:
        """Add `(n, width)` features and `(n,)` cost differences; fit if enough are new."""
        old = self._features if self._seen else features[:0]
        self._features = np.concatenate([old, features])[-_ROWS:]
        self._values = np.append(self._values, values)[-_ROWS:]
        self._seen += len(values)
        if len(self._values) >= max(FEWEST, 2 * self._folds) and self._seen >= self._due:
            fitted = targets(self._values)
            self._due = self._seen + min(_STEP, int(self._seen * (_GROWTH - 1)))
            if fitted.any():
                self.no_gain = float(fitted.max())
                self._select(self._features, fitted)

    def _select(self, x: NDArray[np.float32], y: NDArray[np.float32]) -> None:
        self.fits += 1
        seed = int(self._rng.integers(2**31))
        self.scores, self.members = regressors.ensemble(x, y, self._threshold, self._folds, seed)

    def predict(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return `(members, n)` predicted targets, small is good."""
        return regressors.predictions(self.members.values(), features).astype(np.float64)

    def noise(self) -> float:
        """Return the standard deviation of standardised targets that the members leave unexplained."""
        unexplained = [1 - np.clip(self.scores[name], 0, 1) for name in self.members]
        return float(np.sqrt(np.mean(unexplained)))


def targets(differences: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return `(n,)` targets of cost differences, -log(1 + gain), standardised, small is good; all zeros without gains.

    How much a refused change costs does not matter. The mean of a model of the gain alone is an expected improvement
    (Mockus 1975) that assumes no distribution of costs: it is right where rare changes gain much, as long ones do. The
    logarithm keeps a few large gains from dominating the fit.
    """
    scores = -np.log1p(np.maximum(-differences, 0.0))
    spread = scores.std()
    return ((scores - scores.mean()) / (spread if spread > 1e-9 else 1.0)).astype(np.float32)


class Features:
    """Describes children of a state by their changes, so that what is learned from one parameter applies to all.

    A regression with one feature per parameter knows nothing about an untried parameter. With these features it
    predicts any change after about fifty evaluations, in the same time for ten parameters and for ten thousand. In
    narrow spaces the candidate itself is added: values of choices and slots one-hot, scales as numbers in [0, 1]. For
    sequences of few values their counts are added.
    """

    def __init__(self, task: Task) -> None:
        self._space, self._default = task.space, task.default
        self._sizes = task.space.sizes.astype(np.float32)
        d = len(self._sizes)
        self.effects = Effects(task.space)
        self._now = 0
        self._tried = np.zeros(d, np.int32)
        self._success = np.zeros(d, np.float32)
        scales = task.space.kinds == Kind.SCALE
        widths = np.where(scales, 1, task.space.sizes)
        narrow = widths.sum() <= _NARROW
        self._flags = np.flatnonzero(~scales & narrow)
        self._numbers = np.flatnonzero(scales & narrow)
        spans = [(a, b) for a, b in task.space.slots.values() if task.space.sizes[a] <= _NARROW]
        self._sequences = spans if len(spans) <= 2 else []

    def of(self, base: NDArray, children: NDArray) -> NDArray[np.float32]:
        """Return the `(n, width)` features of `(n, d)` children of a `(d,)` base, all different from it."""
        changes = SparseChanges(base, children)
        columns = [*self._changes(base, children, changes), *self._candidates(children)]
        return np.column_stack(columns).astype(np.float32)

    def _changes(self, base: NDArray, children: NDArray, c: SparseChanges) -> list[NDArray]:
        columns, mean, d = c.columns, c.mean, len(base)
        spans = columns[c.starts + c.counts - 1] - columns[c.starts] + 1
        effect, tries = self.effects.of(c), self.effects.tries[self.effects.places(c)]
        right = (columns + 1) % d  # of the parameter's neighbours; the left one is columns - 1
        return [
            np.log1p(c.counts),
            np.log(spans),
            c.counts / spans,
            mean(c.new == c.new[c.starts][c.rows]),
            _rougher(base, children, c),
            c.total((c.new == self._default[columns]) * 1.0 - (c.old == self._default[columns])),
            mean(columns) / d,
            mean(np.log(self._sizes[columns])),
            mean((c.new - c.old) / np.maximum(self._sizes[columns] - 1, 1)),
            mean(c.new == self._default[columns]),
            mean((base[columns - 1] == c.new) * 0.5 + (base[right] == c.new) * 0.5),
            c.total(effect),
            np.maximum.reduceat(effect, c.starts),
            np.minimum.reduceat(effect, c.starts),
            mean(tries == 0),
            mean(np.log1p(tries)),
            mean(np.log1p(self._now - self._tried[columns])),
            mean(self._success[columns]),
            mean(self._success[columns - 1] + self._success[right]),
        ]

    def _candidates(self, children: NDArray) -> list[NDArray]:
        blocks = [children[:, [i]] == np.arange(self._space.sizes[i]) for i in self._flags]
        numbers = [children[:, self._numbers] / np.maximum(self._sizes[self._numbers] - 1, 1)]
        counts = [_occurrences(children[:, a:b], int(self._space.sizes[a])) for a, b in self._sequences]
        return blocks + numbers + counts

    def learn(self, base: NDArray, children: NDArray, differences: NDArray[np.float64]) -> None:
        """Learn how much more `(n, d)` children cost than their base: `(n,)`, in median differences."""
        c = SparseChanges(base, children)
        self.effects.learn(c, differences)
        self._now += len(children)
        self._tried[c.columns] = self._now
        better = (differences < 0).astype(np.float32)[c.rows]
        self._success[c.columns] += _RATE * (better - self._success[c.columns])


def _rougher(base: NDArray, children: NDArray, c: SparseChanges) -> NDArray[np.float64]:
    """Return by how many more neighbouring parameters differ in each child than in the base, `(n,)`."""
    right = (c.columns + 1) % len(base)
    same = children[c.rows, right] == base[right]  # a pair that changed on both sides is counted once, at its right
    before = np.not_equal(base[c.columns - 1], c.old) + same * np.not_equal(base[right], c.old).astype(int)
    after = np.not_equal(children[c.rows, c.columns - 1], c.new) + same * np.not_equal(base[right], c.new).astype(int)
    return c.total(after - before)


def _occurrences(slots: NDArray, values: int) -> NDArray[np.int64]:
    """Return the `(n, values)` counts of the values in each row of `(n, length)` slots."""
    n = len(slots)
    return np.bincount((np.arange(n)[:, None] * values + slots).ravel(), minlength=n * values).reshape(n, values)


class SparseChanges:
    """The differences of `(n, d)` children from their parent, sparse: one entry per changed parameter, sorted by row.

    Args:
      base: `(d,)` the parent.
      children: `(n, d)`, each different from it.

    Attributes:
      rows, columns: `(m,)` of the changed parameters.
      old, new: `(m,)` values before and after.
      counts: `(n,)` number of changes of each child.
      starts: `(n,)` first entry of each child.
    """

    def __init__(self, base: NDArray, children: NDArray) -> None:
        self.rows, self.columns = np.nonzero(children != base)
        self.old, self.new = base[self.columns].astype(np.int64), children[self.rows, self.columns].astype(np.int64)
        self.counts = np.bincount(self.rows, minlength=len(children))
        self.starts = np.cumsum(self.counts) - self.counts

    def total(self, entries: NDArray) -> NDArray[np.float64]:
        """Return the `(n,)` sums of `(m,)` entries over each child's changes."""
        return np.bincount(self.rows, entries, len(self.counts)).astype(np.float64)

    def mean(self, entries: NDArray) -> NDArray[np.float64]:
        """Return the `(n,)` means of `(m,)` entries over each child's changes."""
        return self.total(entries) / np.maximum(self.counts, 1)


class Effects:
    """A potential for each value of each parameter; the effect of a change is the difference of two potentials.

    Trained by Kaczmarz' method (1937; normalised least mean squares): the unexplained part of a child's cost difference
    to its parent is divided equally among its changes. So the effect of a single change is exact once it was tried, and
    a step takes time in proportion to the changes: unlike regression, it scales to many thousands of parameters.

    Attributes:
      tries: `(sum of sizes,)` how often each value was tried.
    """

    def __init__(self, space: Space) -> None:
        self._starts = np.cumsum(space.sizes) - space.sizes
        self._potential = np.zeros(int(space.sizes.sum()), np.float32)
        self.tries = np.zeros(len(self._potential), np.int32)

    def places(self, changes: SparseChanges) -> NDArray[np.int64]:
        """Return the `(m,)` places of the new values in `tries`."""
        return self._starts[changes.columns] + changes.new

    def of(self, changes: SparseChanges) -> NDArray[np.float32]:
        """Return what each of the `(m,)` changes adds to the cost difference."""
        old = self._starts[changes.columns] + changes.old
        return self._potential[self.places(changes)] - self._potential[old]

    def learn(self, changes: SparseChanges, differences: NDArray[np.float64]) -> None:
        """Learn the `(n,)` cost differences of children to their parent; a value that several set gets the mean."""
        unexplained = (differences - changes.total(self.of(changes))) / np.maximum(changes.counts, 1)
        places, inverse = np.unique(self.places(changes), return_inverse=True)
        times = np.bincount(inverse, minlength=len(places))
        self._potential[places] += np.bincount(inverse, unexplained[changes.rows], len(places)) / np.maximum(times, 1)
        self.tries[places] += times.astype(np.int32)


class Failures:
    """The probability that a change of a sequence runs, given the pairs of neighbours that it introduces.

    A noisy-OR (Pearl 1988, "Probabilistic reasoning in intelligent systems", section 4.3.2): each pair of values makes
    a candidate fail with a probability of its own, wherever it stands. Which of the new pairs caused a failure is not
    observed: EM (Dempster et al. 1977) divides the blame by their probabilities, and less falls on pairs that ran.

    Time and memory are bounded, however many candidates were evaluated. In spaces without sequences every candidate is
    assumed to run: single values predict too little there (with them a joint task gained 0.2 % instead of 2.6 %),
    because a value that fails next to one neighbour runs next to another.
    """

    def __init__(self, space: Space) -> None:
        spans = list(space.slots.values())
        sizes = np.array([space.sizes[start] for start, _ in spans], np.int64)
        ends = np.cumsum(sizes**2)
        tabled = np.flatnonzero(ends <= _TABLE)
        left = [np.arange(spans[i][0], spans[i][1] - 1) for i in tabled]
        lengths = [len(columns) for columns in left]
        self._left = np.concatenate([np.zeros(0, np.int64), *left])
        self._sizes = np.repeat(sizes[tabled], lengths)
        self._starts = np.repeat((ends - sizes**2)[tabled], lengths)
        self._cells = int(ends[tabled[-1]]) if len(tabled) else 1
        self._blame, self._failed, self._ran = np.zeros((3, self._cells))
        self._prior, self._evaluated = 0.0, 0
        self._cases, self._suspects = np.zeros((2, 0), np.int64)

    def chances(self, base: NDArray, children: NDArray) -> NDArray[np.float64]:
        """Return the `(n,)` probabilities that `(n, d)` changes of a `(d,)` base run, if the base does."""
        rows, pairs = self._brought(base, children)
        return np.exp(np.bincount(rows, np.log1p(-self._faults(pairs)), len(children)))

    def learn(self, base: NDArray, children: NDArray, failed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Learn which of `(n, d)` changes of a base that runs failed; return which failures have suspects, `(n,)`."""
        rows, pairs = self._brought(base, children)
        np.add.at(self._ran, pairs[~failed[rows]], 1)
        cases = np.append(self._cases, self._evaluated + rows[failed[rows]])
        suspects = np.append(self._suspects, pairs[failed[rows]])
        forgotten = suspects[:-_SUSPECTS]
        self._blame[forgotten] = self._failed[forgotten] = 0
        self._cases, self._suspects = cases[-_SUSPECTS:], suspects[-_SUSPECTS:]
        self._evaluated += len(children)
        if len(self._suspects):
            self._prior = _PRIOR
            self._share_blame()
        return failed & (np.bincount(rows, minlength=len(children)) > 0)

    def _share_blame(self) -> None:
        """Take steps of EM: divide the blame by the failure probabilities, and estimate these from the blame."""
        cases = np.cumsum(np.diff(self._cases, prepend=self._cases[:1]) != 0)
        pairs, places = np.unique(self._suspects, return_inverse=True)
        self._failed[pairs] = np.bincount(places)
        for _ in range(_EM_STEPS):
            faults = self._faults(pairs)[places]
            failing = -np.expm1(np.bincount(cases, np.log1p(-faults)))
            self._blame[pairs] = np.bincount(places, faults / failing[cases])

    def _faults(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the probability that each pair makes a candidate fail: blame / trials, with the prior as one trial."""
        return (self._blame[pairs] + self._prior) / (self._failed[pairs] + _RUN * self._ran[pairs] + 1)

    def _brought(self, base: NDArray, children: NDArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the pairs that children have and the base has not: rows, ascending, and pairs, each once per row."""
        pairs = self._pairs(children)
        rows, places = np.nonzero(~np.isin(pairs, self._pairs(base[None])))
        return np.divmod(np.unique(rows * self._cells + pairs[rows, places]), self._cells)

    def _pairs(self, configs: NDArray) -> NDArray[np.int64]:
        left, right = configs[:, self._left].astype(np.int64), configs[:, self._left + 1]
        return self._starts + left * self._sizes + right
