"""A seeded random order of a whole space with access to any position."""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .space import Space

_LARGEST = 1 << 62
_ROUNDS = 6
_CHUNK = 1 << 12


class Enumeration:
    """Every candidate of a space once, in an order that depends on the generator.

    A keyed bijection (a Feistel network with cycle walking, Black and Rogaway 2002, section 5) maps position i to a
    number below N, whose mixed-radix digits are the indices. In a space of more than 2^62 candidates, the digits that
    do not fit are pseudo-random functions of i: no run gets that far, and its candidates differ and look uniform.

    Attributes:
      length: the number of positions: the space's cardinality, at most 2^62.
    """

    def __init__(self, space: Space, rng: Generator) -> None:
        self._space = space
        self._keys = rng.integers(0, 2**63, _ROUNDS + 1, dtype=np.uint64)
        blocks = _blocks(space)
        counted = _largest_that_fit([size for _, size in blocks])
        self._counted = [blocks[b] for b in sorted(counted)]
        self._total = math.prod(size for _, size in self._counted)
        tied = len(space.components) + len(space.free_permutations)
        self._tied = [blocks[b] for b in range(tied) if b not in counted]
        self._free = np.array([blocks[b][0][0] for b in range(tied, len(blocks)) if b not in counted], np.int64)
        self.length = min(space.cardinality, _LARGEST)

    def rows(self, start: int, stop: int) -> NDArray:
        """Return the candidates at positions `[start, stop)`, cut off at `length`."""
        positions = np.arange(start, max(start, min(stop, self.length)), dtype=np.uint64)
        numbers = _shuffle(positions % np.uint64(self._total), self._total, self._keys)
        configs = np.zeros((len(positions), len(self._space)), self._space.dtype)
        for columns, size in self._counted:
            digits, numbers = numbers % np.uint64(size), numbers // np.uint64(size)
            configs[:, columns] = self._values(columns, digits)
        for columns, size in self._tied:
            configs[:, columns] = self._scattered(columns, size, positions)
        for first in range(0, len(self._free), _CHUNK):
            columns = self._free[first : first + _CHUNK]
            configs[:, columns] = self._noise(positions, columns) % self._space.sizes[columns].astype(np.uint64)
        return configs

    def _values(self, columns: NDArray, digits: NDArray[np.uint64]) -> NDArray:
        for component in self._space.components:
            if component.columns[0] == columns[0]:
                return component.rows[digits.astype(np.int64)]
        return digits[:, None] if len(columns) == 1 else _unrank(digits, len(columns))

    def _scattered(self, columns: NDArray, size: int, positions: NDArray[np.uint64]) -> NDArray:
        if size > _LARGEST:
            return np.argsort(self._noise(positions, columns), axis=1)
        return self._values(columns, self._noise(positions, columns[:1])[:, 0] % np.uint64(size))

    def _noise(self, positions: NDArray[np.uint64], columns: NDArray) -> NDArray[np.uint64]:
        return _mix(_mix(positions[:, None] ^ self._keys[-1]) + _mix(columns.astype(np.uint64)))


def _blocks(space: Space) -> list[tuple[NDArray, int]]:
    """Return the columns of each independent part of a space, and its number of values."""
    blocks = [(c.columns, len(c.rows)) for c in space.components]
    blocks += [(np.arange(a, b), math.factorial(b - a)) for a, b in space.free_permutations]
    free = np.ones(len(space), bool)
    for columns, _ in blocks:
        free[columns] = False
    free &= space.sizes > 1
    return blocks + [(np.array([j]), int(space.sizes[j])) for j in np.flatnonzero(free)]


def _largest_that_fit(sizes: list[int]) -> set[int]:
    """Return the blocks, chosen largest first, whose product is at most 2^62."""
    chosen, total = set(), 1
    for block in sorted(range(len(sizes)), key=lambda b: -sizes[b]):
        if total * sizes[block] <= _LARGEST:
            chosen.add(block)
            total *= sizes[block]
    return chosen


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the finaliser of SplitMix64 (Steele, Lea and Flood 2014, figure 15)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _shuffle(numbers: NDArray[np.uint64], total: int, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the image of each number under a keyed bijection of `[0, total)`."""
    half = np.uint64(max(1, ((total - 1).bit_length() + 1) // 2))
    mask = np.uint64((1 << int(half)) - 1)
    result, walking = numbers.copy(), np.arange(len(numbers))
    while len(walking):
        left, right = result[walking] >> half, result[walking] & mask
        for key in keys[:_ROUNDS]:
            left, right = right, left ^ (_mix(right ^ key) & mask)
        result[walking] = (left << half) | right
        walking = walking[result[walking] >= np.uint64(total)]
    return result


def _unrank(ranks: NDArray[np.uint64], n: int) -> NDArray[np.int64]:
    """Return the permutation of `[0, n)` at each lexicographic rank (Lehmer code)."""
    digits = np.zeros((len(ranks), n), np.int64)
    for place in range(n):
        factor = np.uint64(math.factorial(n - 1 - place))
        digits[:, place], ranks = (ranks // factor).astype(np.int64), ranks % factor
    for place in range(n - 2, -1, -1):  # a digit counts the smaller values left; shift the later ones
        later = digits[:, place + 1 :]
        later += later >= digits[:, place : place + 1]
    return digits
