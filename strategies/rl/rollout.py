"""Gathers the batches of a round into arrays of padded shapes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .ppo import Round
from .proposals import Proposals

_SLACK = 32
_ENTRIES = 8  # values that a proposal sets, on average, if not more


class Gathered:
    """What was proposed, chosen and paid since the policy last learned."""

    def __init__(self) -> None:
        self._proposals: list[Proposals] = []
        self._chosen: list[NDArray[np.int64]] = []
        self._logs: list[NDArray[np.float64]] = []
        self.rewards: list[NDArray[np.float64]] = []
        self.count = 0

    def add(self, proposals: Proposals, chosen: NDArray[np.int64], logs: NDArray[np.float64]) -> None:
        """Take in a batch."""
        self._proposals.append(proposals)
        self._chosen.append(chosen)
        self._logs.append(logs)

    def reward(self, rewards: NDArray[np.float64]) -> None:
        """Take in what came of the last batch."""
        self.rewards.append(rewards)
        self.count += len(rewards)

    def shares(self) -> tuple[NDArray, NDArray, NDArray]:
        """Return of all values that were tried the place, the reward, and the share of the proposal."""
        parts = []
        for proposals, chosen, rewards in zip(self._proposals, self._chosen, self.rewards, strict=True):
            k = len(proposals.open)
            lengths = np.maximum(np.bincount(proposals.proposal, minlength=k), 1)
            reward = np.full(k, np.nan)
            reward[chosen] = rewards
            here = ~np.isnan(reward[proposals.proposal])
            of = proposals.proposal[here]
            parts.append((proposals.new[here], reward[of], 1 / lengths[of]))
        new, reward, share = (np.concatenate(part) for part in zip(*parts, strict=True))
        return new, reward, share

    def padded(self, size: int) -> Round:
        """Return the round; its advantages have mean 0 and variance 1, or are all 0."""
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
        return Round(
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
    """Return the array with copies of a value behind it, `n` rows in all; integers take 32 bits."""
    rest = np.full((n - len(array), *array.shape[1:]), value, array.dtype)
    whole = np.concatenate([array, rest])
    return whole.astype(np.int32) if whole.dtype == np.int64 else whole
