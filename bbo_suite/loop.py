"""The loop of a search: ask, evaluate, learn. Everything that runs a strategy runs it here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .core.evaluation import evaluate
from .core.level import Level
from .core.options import make
from .core.problem import Evaluations, Problem
from .core.space import Space
from .core.strategy import Strategy, Told
from .core.task import Strategies, Task
from .errors import UserError, error_boundary

if TYPE_CHECKING:
    from .registry import Registry

Answer = Callable[[NDArray, float], Evaluations]
"""Takes `(k, d)` candidates and the seconds that the strategy took for them; returns their evaluations."""


@dataclass(frozen=True, eq=False)
class Batch:
    """A batch of a search.

    Attributes:
      configs: `(k, d)` the candidates.
      evaluations: of the candidates.
      seconds: that the strategy took to propose them, what it did since the batch before included.
      diagnostics: what the strategy reports about itself after it has learned from them; empty for the last batch.
    """

    configs: NDArray
    evaluations: Evaluations
    seconds: float
    diagnostics: Mapping[str, float]

    @property
    def values(self) -> NDArray[np.float64]:
        """The `(k,)` costs; inf for candidates that failed or are forbidden."""
        return self.evaluations.values


def search(
    strategy: str | type[Strategy],
    problem: str | Problem,
    budget: int,
    seed: int | Generator = 0,
    *,
    batch: int = 100,
    options: Any = None,  # noqa: ANN401 - an instance of the strategy's Options, or a dictionary
    registry: Strategies | None = None,
    answer: Answer | None = None,
    owner: str = "",
) -> Iterator[Batch]:
    """Search, and yield each batch once the strategy has learned from it. Nothing is stored.

    A stored run makes the same proposals if it gets the same generator. The search ends when the budget is spent or the
    strategy has no more candidates; to end it earlier, leave the loop.

    Args:
      strategy: its id or class.
      problem: its id, or the problem itself.
      budget: evaluations.
      seed: of the only source of randomness, or that source.
      batch: candidates of one `ask`, at most.
      options: of the strategy, an instance of its `Options` or a dictionary; its defaults if not given.
      registry: finds strategies and problems; by default those that are installed.
      answer: evaluates candidates in the problem's place, such as a log of stored costs.
      owner: the strategy's name in errors; its id by default.

    Raises:
      UserError: an id is unknown, or the strategy or the problem breaks its contract.
    """
    known: Any = registry or _installed()
    found = known.problem(problem) if isinstance(problem, str) else problem
    made = known.strategy(strategy) if isinstance(strategy, str) else strategy
    owner = f"strategy {owner or (strategy if isinstance(strategy, str) else strategy.__name__)}"
    with_parts = made.level >= Level.PARTS
    with error_boundary(f"problem {found.id}", "structure"):
        task = found.task(made.level, known)
    clock = time.perf_counter()
    started = start(made, task, budget, seed, options, owner)
    spent = time.perf_counter() - clock
    return drive(started, answer or (lambda configs, _: evaluate(found, configs, with_parts)), batch, owner, spent)


def start(
    strategy: type[Strategy],
    task: Task,
    budget: int,
    seed: int | Generator = 0,
    options: Any = None,  # noqa: ANN401 - an instance of the strategy's Options, or a dictionary
    owner: str = "",
) -> Strategy:
    """Return a strategy at the start of a search; it sees of the task what its level allows.

    Args:
      owner: names the strategy in errors of one sentence; without it, errors are raised as they are.

    Raises:
      UserError: an option is wrong, or the constructor raised an error.
    """
    named = owner or f"strategy {strategy.__name__}"
    settings = make(strategy.Options, options or {}, named) if options is None or isinstance(options, dict) else options
    with _boundary(owner, "its constructor"):
        made = strategy(task.at(strategy.level), budget, np.random.default_rng(seed), settings)
        if missing := [name for name in ("task", "budget") if not hasattr(made, name)]:
            what = f"sets no {' and no '.join(missing)}; let it begin with super().__init__(task, budget, rng, options)"
            raise UserError(f"{named}: its constructor {what}")
        return made


def drive(strategy: Strategy, answer: Answer, batch: int = 100, owner: str = "", spent: float = 0.0) -> Iterator[Batch]:
    """Run a strategy that has just started until its budget is spent; see `search`.

    Args:
      owner: names the strategy in errors of one sentence; without it, errors are raised as they are.
      spent: seconds that it took to start.

    Raises:
      UserError: the strategy breaks its contract. Without an owner it is a ValueError, or the strategy's own error.
    """
    left = strategy.budget
    while left > 0:
        clock, wanted = time.perf_counter(), min(batch, left)
        with _boundary(owner, "ask"):
            proposed = strategy.ask(wanted)
        configs, spent = checked(strategy.task.space, proposed, wanted, owner), spent + time.perf_counter() - clock
        if not len(configs):
            _check_begun(left < strategy.budget, owner)
            return
        found, left, clock = answer(configs, spent), left - len(configs), time.perf_counter()
        numbers: Mapping[str, float] = {}
        if left > 0:  # no proposal follows the last batch
            with _boundary(owner, "tell"):
                strategy.receive(Told(configs, found.values, found.parts if strategy.level >= Level.PARTS else None))
            with _boundary(owner, "diagnostics"):
                numbers = strategy.diagnostics()
            if strategy.task.compiler:
                numbers = {**numbers, "compilations": float(strategy.task.compiler.count)}
        learning = time.perf_counter() - clock
        yield Batch(configs, found, spent, numbers)
        spent = learning


def checked(space: Space, proposed: object, wanted: int, owner: str) -> NDArray:
    """Return a strategy's proposal as a batch of at most `wanted` rows of the space.

    Raises:
      UserError: it is not such a batch; without an owner, a ValueError.
    """
    try:
        configs = space.check(proposed)
        if len(configs) > wanted:
            raise ValueError(f"it returned {len(configs)} candidates when asked for {wanted}")
    except ValueError as error:
        if not owner:
            raise
        raise UserError(f"{owner} broke its contract in ask: {error}") from None
    return configs


def _check_begun(begun: bool, owner: str) -> None:
    """Refuse a strategy that proposes nothing from the start: no rows mean that all was tried."""
    if not begun:
        what = "broke its contract in ask: its first batch is empty, though nothing was tried"
        raise UserError(f"{owner} {what}") if owner else ValueError(f"the strategy {what}")


def _boundary(owner: str, where: str) -> AbstractContextManager[None]:
    return error_boundary(owner, where) if owner else nullcontext()


def _installed() -> Registry:
    from .registry import Registry

    return Registry()
