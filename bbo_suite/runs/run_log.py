"""The costs of a run's candidates: first from the stored rows, then from the problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ..core.evaluation import evaluate
from ..core.problem import Evaluations, Problem, Status
from ..errors import UserError
from ..parts.parts import Parts, concatenated
from ..store.parts_log import PartsLog
from ..store.rows import Row
from ..store.run_folder import RunFolder
from .finalists import Finalists


class RunLog:
    """Reads the stored rows of a run and appends new ones.

    Args:
      with_parts: True to ask for the costs of parts and to log them.

    Attributes:
      done: number of evaluations so far, including replayed ones.
      seconds: their total time, including the strategy's own.
    """

    def __init__(self, problem: Problem, folder: RunFolder, keep_all: bool, with_parts: bool = False) -> None:
        self._problem, self._folder, self._keep_all = problem, folder, keep_all
        self._stored, self._parts = folder.rows(), PartsLog(folder.path, not problem.noisy) if with_parts else None
        if self._parts:
            folder.sync_first = self._parts.sync
        self.done = 0
        self.seconds = 0.0
        self._best = np.inf
        self._finalists = Finalists()

    @property
    def new(self) -> bool:
        """True once all stored rows are replayed, so that the next batch is evaluated."""
        return self.done >= self._folder.stored

    def evaluations(self, configs: NDArray, strategy_seconds: float) -> Evaluations:
        """Return the evaluations of a batch; what is not stored yet is evaluated and stored."""
        digests = self._problem.space.digests(configs)
        left = max(0, self._folder.stored - self.done)  # beyond them the file holds what was appended since
        known = list(islice(self._stored, min(left, len(configs))))
        for row, digest in zip(known, digests, strict=False):
            if row.digest != digest:
                raise self._other(f"the strategy now proposes another candidate for evaluation {row.evaluation}")
        values = np.array([row.value for row in known])
        self._best = min(self._best, values.min(initial=np.inf))
        parts = [self._parts.replay(self.done + 1, len(known))] if self._parts and known else []
        new = configs[len(known) :]
        rows: list[Row] = []
        if len(new):
            result = evaluate(self._problem, new, with_parts=self._parts is not None)
            first = self.done + len(known) + 1
            rows = list(self._rows(result, new, digests[len(known) :], first, strategy_seconds / len(configs)))
            if self._parts:
                parts.append(self._told(result))
                self._keep(self._parts, first, parts[-1])
            self._folder.append(rows)
            values = np.append(values, [row.value for row in rows])
        if self._problem.noisy:
            self._finalists.add(self.done, configs, digests, values)
        self.done += len(configs)
        self.seconds += sum(row.strategy_seconds + row.evaluation_seconds for row in (*known, *rows))
        status = np.array([row.status for row in (*known, *rows)], np.int8)
        return Evaluations(values, status, parts=concatenated(parts) if parts else None)

    def _told(self, result: Evaluations) -> Parts:
        if result.parts is None:
            raise UserError(f"problem {self._problem.id}: evaluate_parts returned no parts")
        return result.parts

    def _keep(self, log: PartsLog, first: int, parts: Parts) -> None:
        try:
            log.append(first, parts)
        except ValueError as error:
            raise UserError(f"problem {self._problem.id}: {error}") from None

    def end(self, reason: str, stopped: Callable[[], bool]) -> bool:
        """Mark the run as complete, after a check that the folder holds no further rows.

        Of a noisy problem, the best candidates are measured again before. Return False if this was stopped.
        """
        if not self.new:
            raise self._other(f"evaluation {self.done + 1} is stored, but the strategy proposes no more candidates")
        if self._problem.noisy and not self._finalists.measure(self._problem, self._folder.path, stopped):
            return False
        self._folder.end(reason, self.done, float(self._best), self.seconds)
        return True

    def _other(self, what: str) -> UserError:
        why = self._folder.doubt or "the strategy, its libraries or the processor changed"
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
