"""The search of one task by a policy: rounds of candidates around the incumbent, and what they teach."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Task

from .changes import Changes
from .credit import Rewards, shares, tally
from .incumbent import Incumbent
from .learner import Learner
from .policy import Graph
from .ppo import Round

_FORGETTING = 0.98  # of what a change was worth, a round


class Search:
    """Rounds of one task.

    Args:
      task, changes, graph: what is searched, as changes, and as the network sees it.
      learner: the policy; several searches may share it.
      size: candidates of a round.
      tail: of the number of changes of a candidate.
      rng: the only source of randomness.
    """

    def __init__(
        self, task: Task, changes: Changes, graph: Graph, learner: Learner, size: int, tail: float, rng: Generator
    ) -> None:
        self._default, self._changes, self._graph, self._learner = task.default, changes, graph, learner
        self._size, self._tail, self._rng = size, tail, rng
        self.incumbent = Incumbent(task.space, task.default)
        self._rewards = Rewards()
        self._tries, self._worth = np.zeros(len(changes)), np.zeros(len(changes))
        self._begin()

    def _begin(self) -> None:
        """Let the policy look at the incumbent, once for all candidates of the round."""
        c = len(self._graph.parameter)
        row, known = self.incumbent.row, np.column_stack([np.log1p(self._tries), self._worth])
        observed = np.hstack([self._changes.state(row, self._default), known]).astype(np.float32)
        self._state, self._alive = _padded(observed, c), _padded(self._changes.alive(row), c)
        self._logs, self._expected = self._learner.propose(self._graph, self._state, self._alive)
        own = len(self._changes)
        self._chances = np.where(self._alive[:own], np.exp(self._logs[:own].astype(np.float64)), 0.0)
        self._told: list[tuple[NDArray, NDArray[np.float64]]] = []
        self._draws: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._done = 0

    def ask(self, n: int) -> NDArray:
        """Return the proposal, if there is one, and changes of the incumbent; `n`, or what is left of the round."""
        n = min(n, self._size - self._done)
        proposal = None if self._done else self.incumbent.proposal
        first = self.incumbent.row[None][:0] if proposal is None else proposal[None]
        own = n - len(first)
        children, rows, drawn = self._changes.draw(self.incumbent.row, own, self._chances, self._tail, self._rng)
        self._draws.append((self._done + len(first) + rows, drawn))
        self._done += n
        return np.concatenate([first, children])

    def tell(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Take the costs of what was asked for; the policy learns at the end of the round."""
        if self.incumbent.proposal is self.incumbent.row and not self._told:  # the default comes first
            self.incumbent.cost = float(values[0])
        self._told.append((configs, values))
        if self._done == self._size:
            self._end()

    def _end(self) -> None:
        configs, values = (np.concatenate(parts) for parts in zip(*self._told, strict=True))
        rows, drawn = (np.concatenate(parts) for parts in zip(*self._draws, strict=True))
        rewards = self._rewards(values, self.incumbent.cost)
        if len(rows):
            added = shares(rewards, rows, drawn, self._expected)
            data = tally(added, rows, drawn, len(self._graph.parameter))
            if rewards[rows].std() > 0:  # else there is nothing to prefer
                self._learner.learn(self._graph, self._state, self._alive, self._logs, data)
            self._remember(data)
        self._forget(self.incumbent.advance(configs, values, self._rng))
        self._begin()

    def _remember(self, data: Round) -> None:
        """Fold the round into the number of draws and the mean worth of each change."""
        own = len(self._changes)
        draws, worth = data.draws[:own], data.worth[:own]
        self._tries *= _FORGETTING
        total = np.maximum(self._tries + draws, 1e-9)
        self._worth = np.where(draws > 0, (self._tries * self._worth + draws * worth) / total, self._worth)
        self._tries = total

    def _forget(self, parameters: NDArray[np.int64]) -> None:
        """What changed is another decision now."""
        hit = np.isin(self._changes.parameter, parameters)
        self._tries[hit] = self._worth[hit] = 0.0


def _padded(array: NDArray, n: int) -> NDArray:
    return np.concatenate([array, np.zeros((n - len(array), *array.shape[1:]), array.dtype)])
