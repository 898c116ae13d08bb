"""Ehrlich functions: sequences with forbidden transitions and hidden motifs, whose optimum is known."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Evaluations, Problem, Status, product, sequence

ALLOWED = 0.4
"""Share of the symbols, on either side of one, that may follow a symbol."""
VERSION = Path(__file__).with_name("ehrlich_version_1.txt")
"""The first version of the class, as text. Never edit it: the fingerprints of stored runs are hashes of this text."""


class EhrlichProblem(Problem):
    """A sequence that must contain motifs, elements of each at fixed distances, and no forbidden transition.

    Ehrlich functions, after Stanton et al. 2024 (arXiv 2407.00236); transitions are drawn as in their `holo-bench`. The
    value is the product over motifs of the largest share of the motif that is found at one place; the cost is two less
    the value, so that one is the optimum. A sequence with a forbidden transition fails, and so do nearly all random
    ones. The default is a random sequence without. `32x32-a` has 32 slots of 32 symbols; `32x32-a#7` is drawn like it.
    """

    shapes: ClassVar[dict[str, tuple[int, int, int, int]]] = {  # slots, symbols, motifs, elements of a motif
        "32x32-a": (32, 32, 4, 4),
        "64x32-a": (64, 32, 2, 4),
        "128x32-a": (128, 32, 4, 4),
    }
    instances = tuple(shapes)
    unit = "2 - value"
    optimum = 1.0

    def __init__(self, instance: str) -> None:
        slots, symbols, motifs, elements = self.shapes[instance.partition("#")[0]]
        rng = np.random.default_rng(list(instance.encode()))
        self.follows = _draw_transitions(symbols, rng)
        chain = _draw_chain(self.follows, motifs * elements, elements, rng)
        self.motifs = chain.reshape(motifs, elements)  # parts of one chain: they can stand one after another
        room = np.arange(1, slots // motifs)
        drawn = [np.sort(rng.choice(room, elements - 1, replace=False)) for _ in range(motifs)]
        self.offsets = np.array([[0, *places] for places in drawn])
        self.default = _draw_chain(self.follows, slots, 1, rng)
        self.space = product(sequence("symbol", slots, range(symbols)))

    def evaluate(self, configs: NDArray) -> Evaluations:
        """Return two less the value of each sequence; one with a forbidden transition is a compile error."""
        bad = ~self.follows[configs[:, :-1], configs[:, 1:]]
        failed = bad.any(axis=1)
        shares = [self._found(configs, *motif) for motif in zip(self.motifs, self.offsets, strict=True)]
        values = np.where(failed, np.inf, 2 - np.prod(shares, axis=0))
        status = np.where(failed, Status.COMPILE_ERROR, Status.OK).astype(np.int8)
        return Evaluations(values, status, {int(i): _reason(configs[i], bad[i]) for i in np.flatnonzero(failed)})

    def fingerprint(self) -> str:
        """Return a text that changes with the version, the space and the default."""
        version = VERSION.read_text(encoding="utf-8")
        content = f"{version}|{self.space.digest()}|{self.space.pack(self.default_row())}"
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def _found(self, configs: NDArray, motif: NDArray, offsets: NDArray) -> NDArray[np.float64]:
        """Return `(n,)` the largest share of the motif's elements that stand right, over all places for the motif."""
        places = configs.shape[1] - int(offsets[-1])
        right = np.zeros((len(configs), places), np.int8)
        for element, offset in zip(motif, offsets, strict=True):
            right += configs[:, offset : offset + places] == element
        return right.max(axis=1) / len(motif)


def _draw_transitions(symbols: int, rng: Generator) -> NDArray[np.bool_]:
    """Return which symbol (column) may follow which (row): itself, and a band of symbols that lies elsewhere each."""
    band, around = int(ALLOWED * symbols), rng.permutation(symbols)
    distance = np.abs(np.arange(symbols) - around[:, None])
    return (np.minimum(distance, symbols - distance) <= band) | np.eye(symbols, dtype=bool)


def _draw_chain(follows: NDArray[np.bool_], length: int, distinct: int, rng: Generator) -> NDArray[np.int64]:
    """Return symbols that may follow one another; within each part of `distinct` symbols, none comes twice."""
    chain = [int(rng.integers(len(follows)))]
    while len(chain) < length:
        part = chain[len(chain) - len(chain) % distinct :]
        chain.append(int(rng.choice(np.setdiff1d(np.flatnonzero(follows[chain[-1]]), part))))
    return np.array(chain)


def _reason(config: NDArray, bad: NDArray[np.bool_]) -> str:
    place = int(bad.argmax())
    return f"{config[place + 1]} may not follow {config[place]} (slot {place + 1})"
