"""The structure of a pipeline: its stages as a graph, and which parameters interact."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Kind, Space
from bbo_suite.core.task import Graph, Structure

from .stages import Pipeline

_KINDS = ("place", "tile", "order", "vector", "unroll", "storage", "parallel")


def structure(pipeline: Pipeline, space: Space) -> Structure:
    """Return the structure: parameters interact within a stage, and places of stages that use each other.

    The output's parameters set the loops that all stages are computed in, so they interact with all places.
    """
    names = [stage.name for stage in pipeline.stages]
    owners = np.array([names.index(space.name(i).partition(".")[0]) for i in range(len(space))])
    whats = [space.name(i).partition(".")[2].partition("_")[0] for i in range(len(space))]
    edges = np.array([(i, names.index(c)) for i, s in enumerate(pipeline.stages) for c in s.consumers], np.int32)
    starts, neighbours = _sparse(_interacting(owners, np.array([what == "place" for what in whats]), edges))
    features = np.column_stack([[what == known for what in whats] for known in _KINDS] + [space.kinds == Kind.SCALE])
    return Structure(
        starts, neighbours, features.astype(np.float32), (*_KINDS, "ordered"), _graph(pipeline, edges), nodes=owners
    )


def _interacting(owners: NDArray, is_place: NDArray, edges: NDArray) -> NDArray[np.bool_]:
    """Return `(d, d)` booleans, symmetric: whether two parameters interact."""
    linked = np.eye(owners.max() + 1, dtype=bool)
    linked[edges[:, 0], edges[:, 1]] = linked[edges[:, 1], edges[:, 0]] = True
    places = is_place[:, None] & is_place & linked[owners][:, owners]
    with_output = (owners == 0)[:, None] & is_place
    together = (owners[:, None] == owners) | places | with_output | with_output.T
    return together & ~np.eye(len(owners), dtype=bool)


def _sparse(matrix: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    starts = np.concatenate([[0], np.cumsum(matrix.sum(axis=1))])
    return starts.astype(np.int64), np.nonzero(matrix)[1].astype(np.int32)


def _graph(pipeline: Pipeline, edges: NDArray[np.int32]) -> Graph:
    rows = [(not s.places, s.has_update, len(s.axes), len(s.consumers)) for s in pipeline.stages]
    return Graph(np.array(rows, np.float32), ("output", "reduction", "axes", "consumers"), edges)
