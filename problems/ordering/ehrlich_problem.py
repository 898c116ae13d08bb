"""Ehrlich functions: sequences with forbidden transitions and hidden motifs; the optimum is known."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Evaluations, Problem, Status, product, sequence
from bbo_suite.core.variants import split_draw

ALLOWED = 0.4
"""Width of the band of symbols that may follow a symbol, on each side, as a share of all symbols."""
VERSION = Path(__file__).with_name("ehrlich_version_1.txt")
"""The first version of the class, as text. Never edit it: the fingerprints of stored runs are hashes of this text."""


class EhrlichProblem(Problem):
    """A sequence that should contain several motifs, and must not contain a forbidden transition.

    Ehrlich functions, after Stanton et al. 2024 (arXiv 2407.00236); transitions are drawn as in their `holo-bench`. A
    motif is a few symbols at fixed distances from each other. Its quality is the largest share of its symbols that is
    present at any place. The value is the product of the qualities of all motifs, and the cost is 2 minus the value,
    so the optimum is 1. A sequence with a forbidden transition fails, as nearly all random sequences do. The default is
    a random sequence that does not fail. `32x32-a` has 32 slots and 32 symbols; `32x32-a#7` is another draw of it.
    """

    shapes: ClassVar[dict[str, tuple[int, int, int, int]]] = {  # slots, symbols, motifs, elements of a motif
        "32x32-a": (32, 32, 4, 4),
        "64x32-a": (64, 32, 2, 4),
        "128x32-a": (128, 32, 4, 4),
    }
    variant_marks: ClassVar[str] = "#"
    instances = tuple(shapes)
    unit = "loss (2 - value)"
    decision = "sequences with hidden motifs"
    costs = "2 - quality"
    optimum_known = "yes"
    time_per_candidate = "11 µs"
    optimum = 1.0

    def __init__(self, instance: str) -> None:
        slots, symbols, motifs, elements = self.shapes[split_draw(instance)]
        rng = np.random.default_rng(list(instance.encode()))
        self.follows = _draw_transitions(symbols, rng)
        chain = _draw_chain(self.follows, motifs * elements, elements, rng)
        self.motifs = chain.reshape(motifs, elements)  # parts of one chain, so one motif may follow another
        distances = np.arange(1, slots // motifs)
        places = [np.sort(rng.choice(distances, elements - 1, replace=False)) for _ in range(motifs)]
        self.offsets = np.array([[0, *chosen] for chosen in places])
        self.default = _draw_chain(self.follows, slots, 1, rng)
        self.space = product(sequence("symbol", slots, range(symbols)))

    def evaluate(self, configs: NDArray) -> Evaluations:
        """Return 2 minus the value of each sequence; a forbidden transition is a compile error."""
        bad = ~self.follows[configs[:, :-1], configs[:, 1:]]
        failed = bad.any(axis=1)
        qualities = [self._quality(configs, *motif) for motif in zip(self.motifs, self.offsets, strict=True)]
        values = np.where(failed, np.inf, 2 - np.prod(qualities, axis=0))
        status = np.where(failed, Status.COMPILE_ERROR, Status.OK).astype(np.int8)
        return Evaluations(values, status, {int(i): _reason(configs[i], bad[i]) for i in np.flatnonzero(failed)})

    def usage(self) -> str:
        """Return that it is a test function."""
        return "for reading only: a test function, no compiler"

    def fingerprint(self) -> str:
        """Return a text that changes with the version, the space and the default."""
        version = VERSION.read_text(encoding="utf-8")
        content = f"{version}|{self.space.digest()}|{self.space.pack(self.default_row())}"
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def _quality(self, configs: NDArray, motif: NDArray, offsets: NDArray) -> NDArray[np.float64]:
        """Return `(n,)` the largest share of the motif's elements that is present at one place, over all places."""
        places = configs.shape[1] - int(offsets[-1])
        matches = np.zeros((len(configs), places), np.int8)
        for element, offset in zip(motif, offsets, strict=True):
            matches += configs[:, offset : offset + places] == element
        return matches.max(axis=1) / len(motif)


def _draw_transitions(symbols: int, rng: Generator) -> NDArray[np.bool_]:
    """Return which symbol (column) may follow which (row): itself, and a band of symbols around a random centre."""
    band, centres = int(ALLOWED * symbols), rng.permutation(symbols)
    distance = np.abs(np.arange(symbols) - centres[:, None])
    return (np.minimum(distance, symbols - distance) <= band) | np.eye(symbols, dtype=bool)


def _draw_chain(follows: NDArray[np.bool_], length: int, distinct: int, rng: Generator) -> NDArray[np.int64]:
    """Return `(length,)` symbols that may follow one another; none occurs twice in a part of `distinct` symbols."""
    chain = [int(rng.integers(len(follows)))]
    while len(chain) < length:
        part = chain[len(chain) - len(chain) % distinct :]
        chain.append(int(rng.choice(np.setdiff1d(np.flatnonzero(follows[chain[-1]]), part))))
    return np.array(chain)


def _reason(config: NDArray, bad: NDArray[np.bool_]) -> str:
    place = int(bad.argmax())
    return f"{config[place + 1]} may not follow {config[place]} (slot {place + 1})"
