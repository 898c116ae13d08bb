"""The cost of a candidate of a graph of pair costs, and what none exceeds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .network import IMPOSSIBLE, Pairs


def total(pairs: Pairs, config: NDArray) -> float:
    """Return the cost of a `(d,)` candidate; inf if it is impossible."""
    edges = pairs.starts + config[pairs.first] * pairs.sizes[pairs.second] + config[pairs.second]
    return float(pairs.nodes[pairs.firsts[:-1] + config].sum() + pairs.tables[edges].sum())


def ceiling(pairs: Pairs) -> float:
    """Return what no possible candidate exceeds."""
    groups = (pairs.tables, pairs.starts), (pairs.nodes, pairs.firsts[:-1])
    return 1.0 + sum(
        float(np.maximum.reduceat(np.where(costs < IMPOSSIBLE, costs, 0.0), starts).sum())
        for costs, starts in groups
        if len(costs)
    )
