"""Regression trees of scikit-learn in a form that compiled code evaluates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Trees(NamedTuple):
    """The nodes of several trees, one after another.

    Attributes:
      roots: `(t,)` the first node of each tree.
      feature: `(m,)` the feature that a node compares; -1 for a leaf.
      threshold: `(m,)` if the feature is at most this, the next node is the left one.
      left, right: `(m,)` the next node.
      value: `(m,)` what a leaf predicts.
    """

    roots: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: NDArray[np.float64]


def trees_of(estimators: list[Any]) -> Trees:
    """Return the nodes of fitted regression trees of scikit-learn."""
    trees = [each.tree_ for each in estimators]
    roots = np.cumsum([0, *(tree.node_count for tree in trees[:-1])])
    return Trees(
        roots=roots,
        feature=np.concatenate([np.where(tree.children_left < 0, -1, tree.feature) for tree in trees]),
        threshold=np.concatenate([tree.threshold for tree in trees]),
        left=np.concatenate([tree.children_left + root for tree, root in zip(trees, roots, strict=True)]),
        right=np.concatenate([tree.children_right + root for tree, root in zip(trees, roots, strict=True)]),
        value=np.concatenate([tree.value[:, 0, 0] for tree in trees]),
    )
