"""What the passes of a synthetic compiler do to the sites of a program, the places that they can rewrite.

Modelled on what is known of the phase ordering problem (Almagor et al. 2004, "Finding effective compilation sequences";
Kulkarni et al. 2009, "Practical exhaustive optimization phase order exploration and evaluation"): passes enable and
disable one another, a pass that follows itself does nothing, and many orders give the same code.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

MOST_STEPS = 5
STATES = 2 * (MOST_STEPS + 1) + 2
ROLES = {"lower": 0.15, "canonicalize": 0.2, "expand": 0.1}
"""Share of the passes with each role; the others have the role `optimize`."""


@dataclass(frozen=True)
class Rewrites:
    """The passes as tables. A site of each kind is a finite automaton, and passes are its inputs.

    Attributes:
      names: `p` names of passes; the first does nothing.
      after: `(p, kinds, STATES)` the state of a site after a pass.
      size: `(kinds, STATES)` instructions of a site.
      opens: `(kinds, STATES)` whether the sites that wait for a site in this state can be rewritten.
    """

    names: tuple[str, ...]
    after: NDArray[np.int8]
    size: NDArray[np.int64]
    opens: NDArray[np.bool_]

    def role(self, role: str) -> NDArray[np.int64]:
        """Return the passes of a role."""
        return np.array([p for p, name in enumerate(self.names) if name.startswith(role)], np.int64)


def draw_rewrites(kinds: int, passes: int, rng: Generator) -> Rewrites:
    """Return random automata for a number of kinds of sites; `passes` includes the pass that does nothing."""
    names = pass_names(passes)
    unchanged = np.tile(np.arange(STATES, dtype=np.int8), (passes, kinds, 1))
    rewrites = Rewrites(names, unchanged, np.zeros((kinds, STATES), np.int64), np.zeros((kinds, STATES), bool))
    for kind in range(kinds):
        _draw_kind(rewrites, kind, rng)
    return rewrites


def pass_names(passes: int) -> tuple[str, ...]:
    """Return a name for every pass: its role and a number."""
    counts = {role: max(1, round(share * (passes - 1))) for role, share in ROLES.items()}
    counts["optimize"] = passes - 1 - sum(counts.values())
    return ("none", *(f"{role}-{i}" for role, count in counts.items() for i in range(count)))


def _draw_kind(rewrites: Rewrites, kind: int, rng: Generator) -> None:
    """Draw one automaton.

    States 0 to m are the steps of a chain of passes. State m + 1 + j is step j lowered. The last two states are a site
    that was expanded too early, and the same after it was cleaned up.
    """
    after, size = rewrites.after[:, kind], rewrites.size[kind]
    chain, expanding = _draw_chain(rewrites, rng)
    m = len(chain)
    steps, lowered = np.arange(m + 1), m + 1 + np.arange(m + 1)
    bloated, cleaned = STATES - 2, STATES - 1
    after[chain, steps[:-1]] = steps[1:]
    factors = [_factor(rewrites.names[p], 0 <= expanding < j, rng) for j, p in enumerate(chain)]
    size[steps] = rng.integers(40, 160) * np.cumprod([1.0, *factors])
    size[lowered] = size[steps] * 0.9
    for p in rng.choice(rewrites.role("lower"), rng.integers(1, 3)):
        after[p, steps] = lowered
    if expanding > 0:  # copies of a site that was not simplified before must be simplified one by one
        after[chain[expanding], :expanding] = bloated
        after[chain[-1], bloated] = cleaned
        size[bloated], size[cleaned] = size[0] * 1.5, size[0] * 0.95
    if m > 2 and rng.random() < 0.4:  # another canonical form undoes an earlier step
        undoing = np.setdiff1d(rewrites.role("canonicalize"), chain)
        back = int(rng.integers(1, m - 1))
        after[undoing[:1], back + 1] = back
    opening = int(rng.integers(1, m + 1))
    rewrites.opens[kind, [*steps[opening:], *lowered[opening:]]] = True


def _draw_chain(rewrites: Rewrites, rng: Generator) -> tuple[NDArray[np.int64], int]:
    """Return the passes that a site needs, in order, and the position of the one that expands it (-1 for none)."""
    length = int(rng.integers(1, MOST_STEPS))
    chain = _popular(rewrites.role("optimize"), length, rng)
    if rng.random() < 0.6:
        chain = np.concatenate([_popular(rewrites.role("canonicalize"), 1, rng), chain])
    if len(chain) < 2 or rng.random() < 0.5:
        return chain, -1
    place = int(rng.integers(0, len(chain) - 1))
    chain[place] = rng.choice(rewrites.role("expand"))
    return chain, place


def _popular(passes: NDArray[np.int64], count: int, rng: Generator) -> NDArray[np.int64]:
    """Return distinct passes, the first ones most often: in a compiler a few passes help nearly everywhere."""
    chances = 1 / (2.0 + np.arange(len(passes)))
    return rng.choice(passes, min(count, len(passes)), replace=False, p=chances / chances.sum())


def _factor(name: str, expanded: bool, rng: Generator) -> float:
    """Return the factor by which a step changes the size of its site: expansion pays only with the steps after it."""
    low, high = {"canonicalize": (0.97, 1.0), "expand": (1.1, 1.5)}.get(name.partition("-")[0], (0.6, 0.95))
    return float(rng.uniform(low, high)) * (0.75 if expanded else 1.0)
