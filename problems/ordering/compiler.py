"""A synthetic compiler: what passes do to the sites of a program, thousands of orders of passes in one call, its `-O2`.

Sites are the places that passes can rewrite. Modelled on what is known of the phase ordering problem (Almagor et al.
2004, "Finding effective compilation sequences"; Kulkarni et al. 2009, "Practical exhaustive optimization phase order
exploration and evaluation"): passes enable and disable one another, a pass that follows itself does nothing, and many
orders give the same code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit
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


@dataclass(frozen=True)
class Program:
    """The sites of a program, in the order in which every pass visits them.

    Attributes:
      rewrites: what the passes do.
      kinds: `(n,)` the kind of each site.
      weights: `(n,)` how often each site occurs.
      enablers: `(n,)` the earlier site that must be open before a site can be rewritten, -1 for none.
    """

    rewrites: Rewrites
    kinds: NDArray[np.int64]
    weights: NDArray[np.int64]
    enablers: NDArray[np.int64]

    @cached_property
    def _visits(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The sites that each pass can change, in ascending order, as compressed sparse rows."""
        changes = (self.rewrites.after != np.arange(self.rewrites.after.shape[2])).any(axis=2)[:, self.kinds]
        return np.cumsum([0, *changes.sum(axis=1)]), np.nonzero(changes)[1]

    def run(self, orders: NDArray) -> NDArray[np.int64]:
        """Return `(b,)` the instructions that are left after each of `(b, l)` orders of passes."""
        counts = np.empty(len(orders), np.int64)
        tables = (self.rewrites.after, self.rewrites.size, self.rewrites.opens)
        simulate(np.ascontiguousarray(orders), *self._visits, self.kinds, self.weights, self.enablers, *tables, counts)
        return counts

    def digest(self) -> str:
        """Return a digest of the sites and of what passes do to them."""
        tables = (self.rewrites.after, self.rewrites.size, self.rewrites.opens)
        arrays = (*tables, self.kinds, self.weights, self.enablers)
        return hashlib.sha256(b"|".join(a.astype("<i8").tobytes() for a in arrays)).hexdigest()[:16]


def draw_program(rewrites: Rewrites, sites: int, rng: Generator) -> Program:
    """Return a random program: few sites have a large weight, as in real code, and 40 % wait for an earlier site."""
    kinds = rng.integers(0, len(rewrites.size), sites)
    weights = np.minimum(1 + rng.pareto(1.2, sites) * 2, 60).astype(np.int64)
    enablers = (rng.random(sites) * np.arange(sites)).astype(np.int64)
    enablers[(rng.random(sites) < 0.6) | (np.arange(sites) == 0)] = -1
    return Program(rewrites, kinds, weights, enablers)


@njit(cache=True, nogil=True, error_model="numpy")
def simulate(
    orders: NDArray,
    starts: NDArray,
    sites: NDArray,
    kinds: NDArray,
    weights: NDArray,
    enablers: NDArray,
    after: NDArray,
    size: NDArray,
    opens: NDArray,
    counts: NDArray,
) -> None:
    """Apply each of `(b, l)` orders to the program and store the instructions that are left in `counts`, `(b,)`.

    Pass p visits the sites `sites[starts[p]:starts[p + 1]]` in this order, so it can rewrite a site that it has opened
    during the same visit. The tables are those of `Rewrites`.
    """
    state = np.empty(len(kinds), np.int8)
    for b in range(len(orders)):
        state[:] = 0
        for slot in range(orders.shape[1]):
            p = orders[b, slot]
            for place in range(starts[p], starts[p + 1]):
                i = sites[place]
                enabler = enablers[i]
                if enabler < 0 or opens[kinds[enabler], state[enabler]]:
                    state[i] = after[p, kinds[i], state[i]]
        counts[b] = 0
        for i in range(len(kinds)):
            counts[b] += weights[i] * size[kinds[i], state[i]]


def pipeline(programs: Sequence[Program], slots: int, once: bool) -> NDArray[np.int64]:
    """Return `(slots,)` passes that shrink the programs on average.

    The passes are taken one after another, round after round. Each is inserted where it shrinks the programs most
    (Nawaz, Enscore and Ham 1983), or skipped in this round if it does not shrink them. Slots that stay empty do
    nothing. With `once` there is a single round, and every pass is inserted.
    """
    order = np.zeros(0, np.int64)
    turns = range(len(programs[0].rewrites.names))
    while True:
        length = len(order)
        for p in turns[0 if once else 1 :]:
            if len(order) < slots:
                order = _inserted(programs, order, p, once)
        if len(order) in (length, slots):
            return np.concatenate([order, np.zeros(slots - len(order), np.int64)])


def _inserted(programs: Sequence[Program], order: NDArray[np.int64], p: int, always: bool) -> NDArray[np.int64]:
    longer = np.stack([np.insert(order, place, p) for place in range(len(order) + 1)])
    shares = _shares(programs, longer)
    best = int(shares.argmin())
    return longer[best] if always or shares[best] < _shares(programs, order[None])[0] - 1e-9 else order


def _shares(programs: Sequence[Program], orders: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return `(b,)` the instructions after each order as a share of those before, summed over programs."""
    return np.sum([p.run(orders) / p.run(orders[:1, :0]) for p in programs], axis=0)
