"""One run: ask, evaluate, tell until the budget is spent; resuming is the same loop over stored rows."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .diagnostics import Diagnostics
from .errors import UserError, blame
from .evaluation import evaluate
from .problem_base import Problem, Status
from .rows import Row
from .store import RunFolder
from .strategy_base import Strategy


@dataclass(frozen=True)
class Run:
    """What identifies a run; equal runs give equal rows.

    Attributes:
      problem: its id.
      fingerprint: the hash of its content.
      strategy: its id.
      options: the fields of its options.
      seed, budget, batch: of the run; `batch` candidates are asked for at a time.
    """

    problem: str
    fingerprint: str
    strategy: str
    options: dict[str, Any]
    seed: int
    budget: int
    batch: int

    def identity(self) -> dict[str, Any]:
        """Return the run as it is stored and compared: what JSON makes of it, so that a tuple equals its list."""
        return json.loads(json.dumps(dataclasses.asdict(self)))

    def generator(self) -> np.random.Generator:
        """Return the run's only source of randomness, derived from its identity by bytes."""
        text = json.dumps(self.identity(), sort_keys=True)
        return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(text.encode()).digest())))


def execute(
    run: Run,
    problem: Problem,
    strategy: type[Strategy],
    folder: RunFolder,
    stopped: Callable[[], bool],
    keep_all: bool = False,
    max_seconds: float | None = None,
) -> bool:
    """Spend what is left of the run's budget and return whether the run is complete.

    Stored rows are told back instead of evaluated, after a check that the strategy proposes the same candidates.

    Args:
      folder: entered; holds the rows that are known and takes the new ones.
      stopped: asked before each batch; true ends the run early, with everything stored.
      keep_all: store every candidate, not only improvements.
      max_seconds: ends the run after the batch in which the seconds of its rows exceed it; a longer limit, or none,
        continues a run that ended so.

    Raises:
      UserError: the strategy or the problem breaks its contract, or the stored rows are not of this run.
    """
    limit = math.inf if max_seconds is None else max_seconds
    if folder.has_time(limit):
        folder.reopen()
    if folder.ended:
        return True
    try:
        return _loop(run, problem, strategy, folder, stopped, keep_all, limit)
    except UserError as error:
        with suppress(UserError):  # where the disk is full there is no room for this either
            folder.note(error.__cause__ or error)
        raise


def _loop(
    run: Run,
    problem: Problem,
    strategy_class: type[Strategy],
    folder: RunFolder,
    stopped: Callable[[], bool],
    keep_all: bool,
    max_seconds: float,
) -> bool:
    """Return whether the run is complete; false if it was stopped."""
    owner = f"strategy {run.strategy}"
    log, diagnostics = _Log(problem, folder, keep_all), Diagnostics(folder.path)
    with blame(f"problem {run.problem}", "structure"):
        task = problem.task(strategy_class.uses_structure)
    clock = time.perf_counter()
    with blame(owner, "its constructor"):
        options = strategy_class.Options(**run.options)
        strategy = strategy_class(task, run.budget, run.generator(), options)
    while log.done < run.budget:
        if stopped():
            return False
        if log.new and log.seconds >= max_seconds:
            log.end("time")
            return True
        wanted = min(run.batch, run.budget - log.done)
        with blame(owner, "ask"):
            proposed = strategy.ask(wanted)
        strategy_seconds = time.perf_counter() - clock
        configs = checked(problem, proposed, wanted, owner)
        if not len(configs):
            log.end("covered")
            return True
        values = log.values(configs, strategy_seconds)
        clock = time.perf_counter()
        if log.done < run.budget:
            with blame(owner, "tell"):
                strategy.tell(configs, values)
            with blame(owner, "diagnostics"):
                numbers = strategy.diagnostics()
            diagnostics.take(log.done, numbers)
    log.end("budget")
    return True


def checked(problem: Problem, proposed: object, wanted: int, owner: str) -> NDArray:
    """Return what a strategy proposed as a batch of at most `wanted` rows of the space.

    Raises:
      UserError: it is none.
    """
    try:
        configs = problem.space.check(proposed)
        if len(configs) > wanted:
            raise ValueError(f"it returned {len(configs)} candidates when asked for {wanted}")
    except ValueError as error:
        raise UserError(f"{owner} broke its contract in ask: {error}") from None
    return configs


class _Log:
    """The values of the run's candidates: from stored rows as far as these go, then from the problem."""

    def __init__(self, problem: Problem, folder: RunFolder, keep_all: bool) -> None:
        self._problem, self._folder, self._keep_all = problem, folder, keep_all
        self.done = 0
        self.seconds = 0.0
        self._best = np.inf

    @property
    def new(self) -> bool:
        """Are all stored rows told, so that what comes next is evaluated?"""
        return self.done >= len(self._folder.rows)

    def values(self, configs: NDArray, strategy_seconds: float) -> NDArray[np.float64]:
        """Return the `(n,)` costs of a batch, evaluated and stored where they are not known."""
        digests = self._problem.space.digests(configs)
        known = self._folder.rows[self.done : self.done + len(configs)]
        for row, digest in zip(known, digests, strict=False):
            if row.digest != digest:
                raise self._other(f"evaluation {row.evaluation} is another candidate")
        values = np.array([row.value for row in known])
        self._best = min(self._best, values.min(initial=np.inf))
        new = configs[len(known) :]
        rows: list[Row] = []
        if len(new):
            rows = list(self._evaluate(new, digests[len(known) :], len(known), strategy_seconds / len(configs)))
            self._folder.append(rows)
            values = np.append(values, [row.value for row in rows])
        self.done += len(configs)
        self.seconds += sum(row.strategy_seconds + row.evaluation_seconds for row in (*known, *rows))
        return values

    def end(self, reason: str) -> None:
        """Mark the run complete, after a check that the folder holds no rows beyond its end."""
        if self.done < len(self._folder.rows):
            raise self._other(f"evaluation {self.done + 1} is stored although the strategy proposes no more")
        self._folder.end(reason, self.done, float(self._best), self.seconds)

    def _other(self, what: str) -> UserError:
        advice = "the strategy or its libraries have changed; nothing was changed: choose another --study"
        return UserError(f"{self._folder.path}, {what}: {advice}")

    def _evaluate(self, configs: NDArray, digests: list[str], skipped: int, strategy_seconds: float) -> Iterator[Row]:
        space, result = self._problem.space, evaluate(self._problem, configs)
        assert result.seconds is not None
        columns = zip(digests, result.values.tolist(), result.status.tolist(), result.seconds.tolist(), strict=True)
        for i, (digest, value, status, seconds) in enumerate(columns):
            kept = self._keep_all or value < self._best
            self._best = min(self._best, value)
            config, reason = space.pack(configs[i]) if kept else "", result.reasons.get(i, "")
            number = self.done + skipped + i + 1
            yield Row(number, digest, value, Status(status), strategy_seconds, seconds, config, reason)
