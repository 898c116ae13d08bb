"""Random changes of candidates that keep them allowed: mutation and crossover."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .constraint import Component
from .space import Kind, Space


class Moves:
    """Mutation and crossover on one space.

    The changed positions are drawn directly, without dense masks, and free choices and scales change in one step for
    the whole batch. A slot is redrawn, or its sequence shifted by removing and inserting one element; a permutation
    swaps or shifts; constrained parameters move inside their table of allowed rows.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self._component = np.full(len(space), -1)
        fixed = space.sizes == 1
        for number, component in enumerate(space.components):
            self._component[component.columns] = number
            fixed[component.columns] |= len(component.rows) == 1
        self.movable: NDArray[np.int64] = np.flatnonzero(~fixed)
        """The parameters that have more than one allowed value."""
        tied = self._component >= 0
        unshifted = np.isin(space.groups, space.groups[tied])  # shifting a sequence would move its constrained slots
        self._plain = ((space.kinds != Kind.SLOT) | unshifted) & ~tied
        self._block = self._blocks()

    def _blocks(self) -> NDArray[np.int64] | None:
        """Return the first column of the block that each column is inherited with; None if all are independent."""
        block = np.arange(len(self._space))
        for start, stop in self._space.free_permutations:
            block[start:stop] = start
        for component in self._space.components:
            block[component.columns] = component.columns[0]
        return None if (block == np.arange(len(block))).all() else block

    def mutate(self, configs: NDArray, counts: NDArray[np.int64], rng: Generator) -> NDArray:
        """Return copies of `(n, d)` allowed rows with `counts` `(n,)` random single changes each.

        Two changes of a row may hit the same parameter; the later one wins.
        """
        children = configs.copy()
        if not len(self.movable):
            return children
        rows = np.repeat(np.arange(len(configs)), counts)
        columns = self.movable[rng.integers(0, len(self.movable), len(rows))]
        self.change(children, rows, columns, rng)
        return children

    def change(self, children: NDArray, rows: NDArray[np.int64], columns: NDArray[np.int64], rng: Generator) -> None:
        """Change, in place, the movable parameter `columns[k]` of row `rows[k]` for each k."""
        plain = self._plain[columns]
        if plain.all():
            self._redraw(children, rows, columns, rng)
            return
        self._redraw(children, rows[plain], columns[plain], rng)
        rows, columns = rows[~plain], columns[~plain]
        while len(rows):  # moves that change several parameters: one per row at a time
            _, first = np.unique(rows, return_index=True)
            self._structured(children, rows[first], columns[first], rng)
            rows, columns = np.delete(rows, first), np.delete(columns, first)

    def _redraw(self, children: NDArray, rows: NDArray, columns: NDArray, rng: Generator) -> None:
        """Draw another value for each parameter; a scale takes a neighbouring value half of the time."""
        sizes = self._space.sizes[columns]
        old = children[rows, columns].astype(np.int64)
        new = (old + 1 + (rng.random(len(rows)) * (sizes - 1)).astype(np.int64)) % sizes
        stepping = self._space.kinds[columns] == Kind.SCALE
        if stepping.any():
            stepping &= rng.random(len(rows)) < 0.5
            step = old + np.where(rng.random(len(rows)) < 0.5, 1, -1)
            step = np.where(step < 0, 1, np.where(step == sizes, sizes - 2, step))
            new = np.where(stepping, step, new)
        children[rows, columns] = new

    def spread(
        self, children: NDArray, rows: NDArray[np.int64], columns: NDArray[np.int64], lengths: NDArray[np.int64]
    ) -> None:
        """Copy, in place, the value of parameter `columns[k]` of row `rows[k]` to the parameters after it, for each k.

        Of the `lengths[k] - 1` parameters that follow, those with the same number of values change. Slots and
        constrained parameters are neither copied nor changed.
        """
        k, offsets = _ranges(lengths)
        self._copy_values(children, rows, k, columns[k], columns[k] + offsets)

    def copy(
        self,
        children: NDArray,
        rows: NDArray[np.int64],
        columns: NDArray[np.int64],
        starts: NDArray[np.int64],
        lengths: NDArray[np.int64],
    ) -> NDArray[np.bool_]:
        """Copy, in place, the values from parameter `starts[k]` on to the parameters from `columns[k]` on, for each k.

        The same parameters are left out as in `spread`. Returns `(k,)` booleans: True if a value changed.
        """
        k, offsets = _ranges(lengths)
        return self._copy_values(children, rows, k, starts[k] + offsets, columns[k] + offsets)

    def _copy_values(
        self, children: NDArray, rows: NDArray, k: NDArray, sources: NDArray, targets: NDArray
    ) -> NDArray[np.bool_]:
        """Copy sources to targets in `rows[k]` where the sizes are equal; return True for rows that changed."""
        inside = np.maximum(sources, targets) < len(self._space)
        k, sources, targets = k[inside], sources[inside], targets[inside]
        alike = self._space.sizes[sources] == self._space.sizes[targets]
        alike &= self._plain[sources] & self._plain[targets]
        k, sources, targets = k[alike], sources[alike], targets[alike]
        values = children[rows[k], sources]
        changed = values != children[rows[k], targets]
        children[rows[k], targets] = values
        return np.bincount(k[changed], minlength=len(rows)) > 0

    def _structured(self, children: NDArray, rows: NDArray, columns: NDArray, rng: Generator) -> None:
        tied = self._component[columns]
        for number in np.unique(tied[tied >= 0]):
            here = tied == number
            self._within_table(children, rows[here], columns[here], self._space.components[number], rng)
        for group in np.unique(self._space.groups[columns[tied < 0]]):
            here = (tied < 0) & (self._space.groups[columns] == group)
            self._within_group(children, rows[here], columns[here], int(group), rng)

    def _within_table(
        self, children: NDArray, rows: NDArray, columns: NDArray, component: Component, rng: Generator
    ) -> None:
        """Redraw the parameter until the row is allowed; after 8 failures, take any other row of the table."""
        before = children[rows]
        after = before.copy()
        left = np.arange(len(rows))
        for _ in range(8):
            after[left] = before[left]
            self._redraw(after, left, columns[left], rng)
            left = left[~component.allows(after[left])]
        size = len(component.rows)
        other = (component.places(before[left]) + 1 + rng.integers(0, max(1, size - 1), len(left))) % size
        after[np.ix_(left, component.columns)] = component.rows[other]
        children[rows] = after

    def _within_group(self, children: NDArray, rows: NDArray, columns: NDArray, group: int, rng: Generator) -> None:
        start, stop = self._space.slots[group]
        length, distinct = stop - start, group in self._space.permutations
        other = start + (columns - start + 1 + rng.integers(0, max(1, length - 1), len(rows))) % length
        shifting = rng.random(len(rows)) < (0.5 if distinct else 0.25)
        parts = children[rows, start:stop]
        shifted = _shifted(parts, columns - start, other - start)
        shifting &= (shifted != parts).any(axis=1)  # among equal elements a shift would change nothing
        children[rows[shifting], start:stop] = shifted[shifting]
        rows, columns, other = rows[~shifting], columns[~shifting], other[~shifting]
        if distinct:
            children[rows, columns], children[rows, other] = children[rows, other], children[rows, columns]
        else:
            self._redraw(children, rows, columns, rng)

    def cross(self, mothers: NDArray, fathers: NDArray, rng: Generator) -> NDArray:
        """Return uniform crossovers of `(n, d)` allowed rows; each block comes from one parent."""
        n, d = mothers.shape
        bits = np.unpackbits(rng.integers(0, 256, (n, (d + 7) // 8), dtype=np.uint8), axis=1, count=d).view(bool)
        return self._inherited(bits, mothers, fathers)

    def graft(self, mothers: NDArray, fathers: NDArray, rng: Generator) -> NDArray:
        """Return `(n, d)` mothers with one run of adjacent parameters from their fathers: 1 to d, mostly few."""
        n, d = mothers.shape
        lengths = np.floor(np.exp(rng.random(n) * np.log(d + 1)))
        places = (np.arange(d) - rng.integers(0, d, (n, 1))) % d
        return self._inherited(places >= lengths[:, None], mothers, fathers)

    def _inherited(self, maternal: NDArray[np.bool_], mothers: NDArray, fathers: NDArray) -> NDArray:
        """Take each block of parameters from the parent that its first parameter is drawn from."""
        return np.where(maternal if self._block is None else maternal[:, self._block], mothers, fathers)


def _ranges(lengths: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for each position of consecutive ranges, the number of its range and its offset in it."""
    k = np.repeat(np.arange(len(lengths)), lengths)
    return k, np.arange(len(k)) - (np.cumsum(lengths) - lengths)[k]


def _shifted(parts: NDArray, source: NDArray, target: NDArray) -> NDArray:
    """Return rows with the element at `source` removed and inserted at `target`."""
    place = np.arange(parts.shape[1])[None, :]
    source, target = source[:, None], target[:, None]
    left = (place >= source) & (place < target)
    right = (place <= source) & (place > target)
    origin = np.where(place == target, source, place + left.astype(int) - right.astype(int))
    return np.take_along_axis(parts, origin, axis=1)
