"""The rollout buffer: it turns costs into rewards and batches into arrays of padded shapes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .ppo import Rollout
from .proposals import Proposals

_SLACK = 32
_ENTRIES = 8  # room for this many values per proposal; doubled until all fit
_BAD = 0.3  # reward of a loss of the usual size, negated: most changes lose, and finding those that gain matters more
_LEAST = 5e-324  # a cost of 0 counts as the smallest number above it


class RolloutBuffer:
    """The proposals, choices and rewards since the policy last learned."""

    def __init__(self) -> None:
        self._proposals: list[Proposals] = []
        self._chosen: list[NDArray[np.int64]] = []
        self._logs: list[NDArray[np.float64]] = []
        self.rewards: list[NDArray[np.float64]] = []
        self.count = 0

    def add(self, proposals: Proposals, chosen: NDArray[np.int64], logs: NDArray[np.float64]) -> None:
        """Add the proposals of a batch, the `(n,)` chosen ones, and their log-probabilities."""
        self._proposals.append(proposals)
        self._chosen.append(chosen)
        self._logs.append(logs)

    def reward(self, rewards: NDArray[np.float64]) -> None:
        """Add the `(n,)` rewards of the last batch."""
        self.rewards.append(rewards)
        self.count += len(rewards)

    def shares(self) -> tuple[NDArray, NDArray, NDArray]:
        """Return for all values that were tried: place, reward of the proposal, and 1 / how many values it set."""
        parts = []
        for proposals, chosen, rewards in zip(self._proposals, self._chosen, self.rewards, strict=True):
            k = len(proposals.open)
            lengths = np.maximum(np.bincount(proposals.proposal, minlength=k), 1)
            reward = np.full(k, np.nan)
            reward[chosen] = rewards
            tried = ~np.isnan(reward[proposals.proposal])
            of = proposals.proposal[tried]
            parts.append((proposals.new[tried], reward[of], 1 / lengths[of]))
        new, reward, share = (np.concatenate(part) for part in zip(*parts, strict=True))
        return new, reward, share

    def padded(self, size: int) -> Rollout:
        """Return the rollout; its advantages have mean 0 and variance 1, or are all 0."""
        counts = [len(p.open) for p in self._proposals]
        starts = np.cumsum([0, *counts[:-1]])
        n = size + _SLACK
        p = n * max(1, round(sum(counts) / max(1, self.count))) + 1
        shifted = ((q.proposal + s, q.new, q.old) for q, s in zip(self._proposals, starts, strict=True))
        entries = [np.concatenate(parts) for parts in zip(*shifted, strict=True)]
        e = p * _ENTRIES
        while e < len(entries[0]):
            e *= 2
        reward = np.concatenate(self.rewards)
        advantage = (reward - reward.mean()) / (reward.std() or 1.0)
        chosen = np.concatenate([c + s for c, s in zip(self._chosen, starts, strict=True)])
        return Rollout(
            filled(entries[0], e, p - 1),
            filled(entries[1], e, 0),
            filled(entries[2], e, 0),
            filled(np.concatenate([q.facts for q in self._proposals]), p, 0),
            filled(np.concatenate([q.open for q in self._proposals]), p, False),
            filled(np.repeat(np.arange(len(counts)), counts), p, n),
            filled(chosen, n, p - 1),
            filled(np.ones(len(chosen), np.float32), n, 0),
            filled(np.concatenate(self._logs), n, 0).astype(np.float32),
            filled(advantage, n, 0).astype(np.float32),
        )


def filled(array: NDArray, n: int, value: float) -> NDArray:
    """Return the array with copies of a value appended, `n` rows in all; integers take 32 bits."""
    rest = np.full((n - len(array), *array.shape[1:]), value, array.dtype)
    longer = np.concatenate([array, rest])
    return longer.astype(np.int32) if longer.dtype == np.int64 else longer


class Rewards:
    """Turns costs into rewards: logarithms of speedups over the state, in units of their running medians.

    Gains and losses have separate units, and losses count less: most changes lose, and a policy that is rewarded for
    avoiding the worst learns to change nothing that matters. For the same reason a candidate with exactly the cost of
    the state counts as a usual loss. The inverse hyperbolic sine compresses large rewards, so that neither outliers
    nor units matter. A failure is a large loss.
    """

    def __init__(self) -> None:
        self._gain = self._loss = 0.0

    def __call__(self, values: NDArray[np.float64], state: float) -> NDArray[np.float64]:
        """Return `(n,)` rewards of the costs of changes of a state, given its own cost."""
        good = np.isfinite(values)
        if not np.isfinite(state):
            return np.where(good, 1.0, -1.0)
        known = np.where(good, values, state)
        gains = np.log(max(state, _LEAST)) - np.log(np.maximum(known, _LEAST))
        self._gain = _running(self._gain, gains[gains > 0])
        self._loss = _running(self._loss, -gains[gains < 0])
        losses = np.where(gains == 0, 1.0, -gains / (self._loss or 1.0))
        losses = np.where(good, np.minimum(np.arcsinh(losses), 3.0), 3.0)
        return np.where(gains > 0, 1 + np.arcsinh(gains / (self._gain or 1.0)), -_BAD * losses)


def _running(scale: float, sizes: NDArray[np.float64]) -> float:
    """Return the running median of positive sizes."""
    if not len(sizes):
        return scale
    now = float(np.median(sizes))
    return 0.8 * scale + 0.2 * now if scale else now
