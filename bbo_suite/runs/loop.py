"""A stored run: a search whose costs come first from the stored rows, then from the problem."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.evaluation import evaluate, measured_pair
from ..core.level import Level
from ..core.problem import SAME_CODE, Evaluations, Problem, Status
from ..core.strategy import Strategy
from ..core.task import Strategies
from ..errors import UserError, error_boundary
from ..forecast import Curve, Worth
from ..loop import search
from ..parts.parts import Parts, concatenated
from ..store.diagnostics import Diagnostics
from ..store.identity import Run
from ..store.parts_log import PartsLog
from ..store.remeasured import ROUNDS, Pair, PairLog, is_remeasured
from ..store.rows import DEPARTS_BECAUSE, Row, departure
from ..store.run_folder import RunFolder

MOST = 10
"""The number of candidates that are measured again."""
MEASUREMENTS = 2 * ROUNDS * MOST
"""Evaluations that this takes, those of the default included."""
_SLICE_SECONDS = 1.0
"""Of a batch, about as much is evaluated between two looks whether to stop; each such slice is stored at once."""


class _Stopped(Exception):
    """The run was stopped in the middle of a batch."""


def run_loop(
    run: Run,
    problem: Problem,
    strategy: type[Strategy],
    folder: RunFolder,
    stopped: Callable[[], bool],
    keep_all: bool = False,
    max_seconds: float | None = None,
    strategies: Strategies | None = None,
    price: float | None = None,
) -> bool:
    """Spend the rest of the run's budget and return whether the run is complete.

    Stored rows are not evaluated again: the strategy must propose the same candidates, and receives the stored costs.
    The best candidates of a noisy problem are measured again in the end, also if the run had ended without that.

    Args:
      folder: already entered; holds the stored rows and takes the new ones.
      stopped: called before each batch, about each second of a long one, and before each measurement in the end; True
        ends the run early, with all rows stored.
      keep_all: store every candidate, not only improvements.
      max_seconds: ends the run after the batch in which the sum of its seconds exceeds this; a longer limit, or none,
        continues such a run.
      strategies: for a strategy that runs others; None for those that are installed.
      price: ends the run once more evaluations are expected to gain less than this each (see `forecast`); a lower one,
        or none, continues such a run.

    Raises:
      UserError: the strategy or the problem breaks its contract, or the stored rows belong to another run.
    """
    limit = math.inf if max_seconds is None else max_seconds
    if folder.has_time(limit) or folder.is_worth_more(price or 0.0):
        folder.reopen()
    if folder.ended and (not problem.noisy or is_remeasured(folder.path)):
        return True
    with suppress(_Stopped), _noted_errors(folder):
        if stopped():
            return False
        log = RunLog(problem, folder, stopped, keep_all, strategy.level >= Level.PARTS and problem.tells_parts)
        owner = f"strategy {run.strategy}"
        diagnostics = Diagnostics(folder.path, owner)
        with error_boundary(owner, "its constructor"):
            options = strategy.Options(**run.options)
        worth = Worth(price, run.budget) if price else None
        settings: dict[str, Any] = {"batch": run.batch, "options": options, "registry": strategies}
        settings |= {"answer": log.evaluations, "owner": run.strategy}
        for batch in search(strategy, problem, run.budget, run.generator(), **settings):
            if log.done == run.budget:
                return log.end("budget", stopped)
            diagnostics.take(log.done, batch.diagnostics)
            if stopped():
                return False
            if log.new and log.seconds >= limit:
                return log.end("time", stopped)
            if worth and worth.is_over(log.curve) and log.new:  # asked of replayed rows too: it remembers its looks
                return log.end("price", stopped, worth.price)
        return log.end("covered", stopped)
    return False


@contextmanager
def _noted_errors(folder: RunFolder) -> Iterator[None]:
    """Note an error that ends the run in its folder."""
    try:
        yield
    except UserError as error:
        with suppress(UserError):  # on a full disk this fails too
            folder.note(error.__cause__ or error)
        raise


class RunLog:
    """Reads the stored rows of a run and appends new ones.

    Args:
      stopped: called between the slices of a batch; True ends the run.
      with_parts: True to ask for the costs of parts and to log them.

    Attributes:
      done: number of evaluations so far, including replayed ones.
      seconds: their total time, including the strategy's own.
    """

    def __init__(
        self, problem: Problem, folder: RunFolder, stopped: Callable[[], bool], keep_all: bool, with_parts: bool = False
    ) -> None:
        self._problem, self._folder, self._stopped, self._keep_all = problem, folder, stopped, keep_all
        self._slice = 1.0 if problem.timed and problem.workers == 1 else math.inf
        self._stored, self._parts = folder.rows(), PartsLog(folder.path, problem.exact_parts) if with_parts else None
        if self._parts:
            folder.sync_first = self._parts.sync
        self.done = 0
        self.seconds = 0.0
        self._best = np.inf
        self._steps: list[tuple[int, float]] = []
        self._finalists = Finalists()

    @property
    def new(self) -> bool:
        """True once all stored rows are replayed, so that the next batch is evaluated."""
        return self.done >= self._folder.stored

    @property
    def curve(self) -> Curve:
        """What a forecast needs."""
        default, steps, optimum = self._folder.default, self._steps, self._problem.optimum
        gain = lambda n: max((default / cost - 1 if cost else math.inf for at, cost in steps if at <= n), default=-1.0)  # noqa: E731
        return Curve(gain, self.done, len(self._problem.space), default / optimum - 1 if optimum else math.inf)

    def evaluations(self, configs: NDArray, strategy_seconds: float) -> Evaluations:
        """Return the evaluations of a batch; what is not stored yet is evaluated and stored."""
        digests = self._problem.space.digests(configs)
        left = max(0, self._folder.stored - self.done)  # beyond them the file holds what was appended since
        known = list(islice(self._stored, min(left, len(configs))))
        if what := departure(known, digests):
            raise self._other(what)
        self._best = min([self._best, *(row.value for row in known)])
        parts = [self._parts.replay(self.done + 1, len(known))] if self._parts and known else []
        rows = list(known)
        while (at := len(rows)) < len(configs):
            if at > len(known) and self._stopped():
                raise _Stopped
            until = int(min(at + self._slice, len(configs)))
            rows += self._evaluated(configs[at:until], digests[at:until], strategy_seconds / len(configs), at, parts)
        values = np.array([row.value for row in rows])
        if self._problem.noisy:
            twins = np.array([row.reason == SAME_CODE for row in rows])
            self._finalists.add(self.done, configs, digests, np.where(twins, np.inf, values))  # one of each code
        self._improve(values)
        self.done += len(configs)
        self.seconds += sum(row.strategy_seconds + row.evaluation_seconds for row in rows)
        status = np.array([row.status for row in rows], np.int8)
        return Evaluations(values, status, parts=concatenated(parts) if parts else None)

    def _evaluated(
        self, configs: NDArray, digests: list[str], strategy_seconds: float, before: int, parts: list[Parts]
    ) -> list[Row]:
        """Evaluate a slice of a batch and store it.

        Args:
          strategy_seconds: of each candidate.
          before: candidates of the batch before these.
          parts: gets the costs of parts.
        """
        clock = time.perf_counter()
        result = evaluate(self._problem, configs, with_parts=self._parts is not None)
        if self._problem.workers == 1:  # several processes are kept busy by a whole batch
            fitting = len(configs) * _SLICE_SECONDS / (time.perf_counter() - clock + 1e-9)
            self._slice = max(1.0, min(fitting, 2 * len(configs)))  # a known cost, as of the default, takes no time
        first = self.done + before + 1
        rows = list(self._rows(result, configs, digests, first, strategy_seconds))
        if self._parts:
            parts.append(self._parts_of(result))
            self._log_parts(self._parts, first, parts[-1])
        self._folder.append(rows)
        return rows

    def _improve(self, values: NDArray[np.float64]) -> None:
        best = self._steps[-1][1] if self._steps else math.inf
        lowest = np.minimum.accumulate(np.append(best, values))
        places = np.flatnonzero(lowest[1:] < lowest[:-1])
        self._steps += zip((self.done + 1 + places).tolist(), lowest[1:][places].tolist(), strict=True)

    def _parts_of(self, result: Evaluations) -> Parts:
        if result.parts is None:
            raise UserError(f"problem {self._problem.id}: evaluate_parts returned no parts")
        return result.parts

    def _log_parts(self, log: PartsLog, first: int, parts: Parts) -> None:
        try:
            log.append(first, parts)
        except ValueError as error:
            raise UserError(f"problem {self._problem.id}: {error}") from None

    def end(self, reason: str, stopped: Callable[[], bool], price: float | None = None) -> bool:
        """Mark the run as complete, after a check that the folder holds no further rows.

        Of a noisy problem, the best candidates are measured again before. Return False if this was stopped.
        """
        if not self.new:
            raise self._other(departure(list(islice(self._stored, 1)), []))
        pairs = self._finalists.measure(self._problem, self._folder.path, stopped) if self._problem.noisy else 0
        if pairs is None:
            return False
        self._folder.end(reason, self.done, pairs, price)
        return True

    def _other(self, what: str) -> UserError:
        why = self._folder.unverified_reason or DEPARTS_BECAUSE
        return UserError(f"{self._folder.path}: {what}; {why}; choose another --study (no file was changed)")

    def _rows(
        self, result: Evaluations, configs: NDArray, digests: list[str], first: int, strategy_seconds: float
    ) -> Iterator[Row]:
        """Yield the rows of a batch from evaluation `first` on."""
        assert result.seconds is not None
        columns = zip(digests, result.values.tolist(), result.status.tolist(), result.seconds.tolist(), strict=True)
        for i, (digest, value, status, seconds) in enumerate(columns):
            kept = self._keep_all or value < self._best
            self._best = min(self._best, value)
            config, reason = self._problem.space.pack(configs[i]) if kept else "", result.reasons.get(i, "")
            yield Row(first + i, digest, value, Status(status), strategy_seconds, seconds, config, reason)


class Finalists:
    """The best distinct candidates that a run has evaluated so far, each at its lowest cost."""

    def __init__(self) -> None:
        self._best: dict[str, tuple[float, int, NDArray]] = {}

    def add(self, done: int, configs: NDArray, digests: Sequence[str], values: NDArray[np.float64]) -> None:
        """Take a batch of `(n, d)` candidates and their `(n,)` costs.

        Args:
          done: evaluations before this batch.
        """
        bound = max(value for value, _, _ in self._best.values()) if len(self._best) == MOST else np.inf
        for i in np.flatnonzero(values < bound).tolist():
            value, digest = float(values[i]), digests[i]
            if digest not in self._best or value < self._best[digest][0]:
                self._best[digest] = value, done + i + 1, configs[i].copy()
        self._best = dict(sorted(self._best.items(), key=lambda item: item[1][:2])[:MOST])

    def measure(self, problem: Problem, folder: Path, stopped: Callable[[], bool]) -> int | None:
        """Measure them in pairs with the default, store the pairs, and return how many are stored; None if stopped.

        Pairs that are stored already are not measured again.

        Raises:
          UserError: the default fails, the problem breaks its contract, or the stored pairs are damaged.
        """
        log = PairLog(folder)
        known = {(pair.round, pair.evaluation) for pair in log}
        log.append([])
        for number in range(1, ROUNDS + 1):
            for _, evaluation, config in self._best.values():
                if (number, evaluation) in known:
                    continue
                if stopped():
                    return None
                default, value, _ = measured_pair(problem, config)
                log.append([Pair(number, evaluation, default, value, problem.space.pack(config)).line()])
                known.add((number, evaluation))
        log.sync()
        return len(known)
