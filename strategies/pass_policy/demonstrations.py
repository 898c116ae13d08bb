"""Demonstrations for a policy: the best known sequence of each program, without the passes that do nothing for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .episodes import play

_LONGEST_DETOUR = 3
Sequences = Mapping[str, Sequence[int]]
Pairs = tuple[list[Any], NDArray[np.int64]]


def pruned(env: Any, problem: str, actions: Sequence[int]) -> tuple[int, ...]:  # noqa: ANN401 - gymnasium is an extra
    """Return a sequence without the passes that can be left out one after another and cost nothing, last ones first."""
    kept = tuple(actions)
    least = play(env, problem, kept).cost
    for place in reversed(range(len(kept))):
        shorter = kept[:place] + kept[place + 1 :]
        if (cost := play(env, problem, shorter).cost) <= least:
            kept, least = shorter, cost
    return kept


def exchanged(env: Any, problems: Iterable[str], pool: Sequences, longest: int) -> dict[str, tuple[int, ...]]:  # noqa: ANN401
    """Return for each problem the best sequence of a pool, or of two one after the other, up to a length.

    Of equal ones it is that which serves most problems, then the shortest. So programs learn from each other, and
    similar programs get the same sequence, which is easier to imitate.
    """
    single = {tuple(actions) for actions in pool.values()}
    joined = {one + other for one in single for other in single if len(one + other) <= longest}
    sequences = sorted(single | joined, key=lambda s: (len(s), s))
    names = list(problems)
    costs = np.array([[play(env, problem, actions).cost for actions in sequences] for problem in names])
    best = costs <= costs.min(axis=1, keepdims=True)
    return {
        name: sequences[int(np.where(row, best.sum(axis=0), -1).argmax())]
        for name, row in zip(names, best, strict=True)
    }


def demonstrated(env: Any, sequences: Sequences, detours: int, rng: Generator) -> Pairs:  # noqa: ANN401
    """Return n observations and the right action after each, `(n,)`, action 0 at the end.

    Each sequence is played from the start of its program, and after up to three random passes, as often as `detours`
    says. A detour after which it no longer reaches its cost is left out. So the policy also learns what to do where no
    demonstration leads (noise injection, Laskey et al. 2017).
    """
    seen: list[Any] = []
    right: list[int] = []
    for problem, actions in sequences.items():
        least = play(env, problem, actions).cost
        for detour in range(detours + 1):
            first = rng.integers(1, env.action_space.n, rng.integers(1, _LONGEST_DETOUR + 1) if detour else 0)
            episode = play(env, problem, [*first.tolist(), *actions])
            if episode.cost <= least:
                seen.extend(episode.observations[len(first) :])
                right.extend([*actions, 0])
    return seen, np.array(right, np.int64)
