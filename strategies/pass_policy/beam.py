"""Beam search for passes, guided by a policy."""

from __future__ import annotations

from typing import Any, NamedTuple

from .episodes import play
from .policy import Policy


class Found(NamedTuple):
    """The best sequence that was compiled.

    Attributes:
      actions: it.
      cost: its cost.
      compilations: how many sequences were costed; each beginning that was costed counts.
    """

    actions: tuple[int, ...]
    cost: float
    compilations: int


class _Beginning(NamedTuple):
    score: float
    actions: tuple[int, ...]
    observation: Any


def greedy(env: Any, problem: str, policy: Policy) -> Found:  # noqa: ANN401 - gymnasium is an extra
    """Return what the policy does alone: the most probable action until it stops. The result counts, not its best."""
    episode, actions = play(env, problem, ()), tuple[int, ...]()
    while not episode.ended and (best := int(policy(episode.observations[-1]).argmax())):
        actions = (*actions, best)
        episode = play(env, problem, actions)
    return Found(actions, episode.cost, len(actions))


def beam(env: Any, problem: str, policy: Policy, width: int, compilations: int) -> Found:  # noqa: ANN401
    """Return the best of the beginnings that the policy finds most probable.

    Each round lengthens the `width` beginnings of the highest probability by one pass and costs them. It ends when all
    of them stop, or after `compilations` costs.
    """
    start = play(env, problem, ())
    best, used = Found((), start.cost, 0), 0
    beginnings = [_Beginning(0.0, (), start.observations[-1])]
    while beginnings and used < compilations:
        longer: list[_Beginning] = []
        for score, actions in _most_probable(beginnings, policy, width)[: compilations - used]:
            episode, used = play(env, problem, actions), used + 1
            best = min(best, Found(actions, episode.cost, 0), key=lambda found: found.cost)
            if not episode.ended:
                longer.append(_Beginning(score, actions, episode.observations[-1]))
        beginnings = longer
    return best._replace(compilations=used)


def _most_probable(beginnings: list[_Beginning], policy: Policy, width: int) -> list[tuple[float, tuple[int, ...]]]:
    """Return the most probable beginnings that are one pass longer; those that stop take their place and leave."""
    choices = [
        (score + float(chance), (*actions, action))
        for score, actions, observation in beginnings
        for action, chance in enumerate(policy(observation))
    ]
    kept = sorted(choices, key=lambda choice: -choice[0])[:width]
    return [(score, actions) for score, actions in kept if actions[-1]]
