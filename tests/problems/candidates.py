"""Candidates by the names of their parameters."""

from __future__ import annotations

from collections.abc import Mapping

from numpy.typing import NDArray

from bbo_suite import Problem, Space


def names_of(space: Space) -> list[str]:
    return [space.name(i) for i in range(len(space))]


def changed(problem: Problem, indices: Mapping[str, int]) -> NDArray:
    """Return the default with other values of some parameters."""
    row, names = problem.default_row(), names_of(problem.space)
    for name, index in indices.items():
        row[names.index(name)] = index
    return row
