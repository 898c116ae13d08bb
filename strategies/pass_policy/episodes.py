"""Episodes that are played action by action, and the costs of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class Episode(NamedTuple):
    """What playing a sequence has shown.

    Attributes:
      observations: before each of the n actions, and after the last.
      cost: after the last action; infinite if one failed.
      ended: whether no action can follow.
    """

    observations: list[Any]
    cost: float
    ended: bool


def play(env: Any, problem: str, actions: Sequence[int]) -> Episode:  # noqa: ANN401 - gymnasium is an extra
    """Play a sequence from the start of a program; it may not stop before its last action."""
    observation, info = env.reset(options={"problem": problem})
    seen, ended = [observation], False
    for action in actions:
        if ended:
            raise ValueError(f"the episode ends before action {action} of {list(actions)}")
        observation, _, ended, _, info = env.step(np.int64(action))
        seen.append(observation)
        if "failure" in info:
            return Episode(seen, np.inf, True)
    return Episode(seen, float(info["cost"]), ended)
