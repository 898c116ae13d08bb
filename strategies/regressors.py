"""Regressors of scikit-learn: candidates, their score, the selection of the good ones, and the nodes of their trees."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


class Predictor(Protocol):
    """Something that predicts."""

    def predict(self, features: NDArray) -> NDArray:
        """Return the `(n,)` targets of `(n, width)` features."""
        ...


class Regressor(Predictor, Protocol):
    """A predictor that learns, as scikit-learn's do."""

    def fit(self, features: NDArray, targets: NDArray) -> Any:  # noqa: ANN401 - itself
        """Learn from `(n, width)` features and `(n,)` targets."""
        ...


def candidates(seed: int, rows: int) -> dict[str, Regressor]:
    """Return the unfitted regressors of Phothilimthana et al. 2021, small enough for one core to fit in a second.

    Args:
      seed: seed of their random generators.
      rows: number of rows that they will be fitted to; in cross-validation at least half of it.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import Ridge
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    trees, rounds = (min(most, max(5, rows // 20)) for most in (15, 40))  # few rows need few trees
    batch = max(1, min(64, rows // 2))  # scikit-learn warns of a batch larger than the data
    network = MLPRegressor(
        hidden_layer_sizes=(32,), alpha=0.1, batch_size=batch, learning_rate_init=5e-3, max_iter=15, random_state=seed
    )
    return {
        "ridge": make_pipeline(StandardScaler(), Ridge(10.0)),
        "forest": RandomForestRegressor(trees, max_features=0.4, min_samples_leaf=3, random_state=seed),
        "boosting": HistGradientBoostingRegressor(
            max_iter=rounds, learning_rate=0.15, max_leaf_nodes=15, early_stopping=False, random_state=seed
        ),
        "network": make_pipeline(StandardScaler(), network),
    }


def score(regressor: Regressor, features: NDArray, targets: NDArray, folds: int, seed: int) -> float:
    """Return the mean R^2 over shuffled cross-validation folds."""
    from sklearn.metrics import r2_score
    from sklearn.model_selection import KFold

    scores = []
    for train, test in KFold(folds, shuffle=True, random_state=seed).split(features):
        fitted = fit(regressor, features[train], targets[train])
        scores.append(r2_score(targets[test], fitted.predict(features[test])))
    return sum(scores) / folds


def fit(regressor: Regressor, features: NDArray, targets: NDArray) -> Predictor:
    """Fit in place and return the regressor."""
    with quiet():
        regressor.fit(features, targets)
    return regressor


def light(fitted: Predictor) -> Predictor:
    """Return what predicts the same with less overhead."""
    from sklearn.ensemble import RandomForestRegressor

    return _Forest([tree.tree_ for tree in fitted.estimators_]) if isinstance(fitted, RandomForestRegressor) else fitted


class _Forest(NamedTuple):
    """A forest without scikit-learn's checks and jobs, which take longer than a few trees on a few rows."""

    trees: list[Any]

    def predict(self, features: NDArray) -> NDArray:
        """Return the `(n,)` mean prediction of the trees."""
        rows = np.ascontiguousarray(features, np.float32)
        total = np.zeros(len(rows))
        for tree in self.trees:
            total += tree.predict(rows)[:, 0]
        return total / len(self.trees)


def select(scores: Mapping[str, float], threshold: float) -> list[str]:
    """Return the names whose score reaches the threshold, or else the single best one (Angermueller et al. 2020)."""
    return [name for name, value in scores.items() if value >= threshold] or [max(scores, key=lambda n: scores[n])]


def ensemble(
    features: NDArray, targets: NDArray, threshold: float, folds: int, seed: int
) -> tuple[dict[str, float], dict[str, Predictor]]:
    """Return the scores of all candidates, by name, and those that `select` takes, fitted."""
    found = candidates(seed, len(targets))
    with one_thread():
        scores = {name: score(each, features, targets, folds, seed) for name, each in found.items()}
        members = {name: light(fit(found[name], features, targets)) for name in select(scores, threshold)}
    return scores, members


def predictions(members: Iterable[Predictor], features: NDArray) -> NDArray:
    """Return the `(members, n)` predictions of an ensemble."""
    with one_thread(), quiet():
        return np.stack([member.predict(features) for member in members])


def best_and_last(values: NDArray, most: int) -> NDArray[np.int64]:
    """Return the places of the lowest and the last of many `(n,)` values, each half of `most`, in order."""
    best = np.argsort(values, kind="stable")[: most // 2]
    return np.union1d(best, np.arange(len(values))[-most // 2 :])


class Trees(NamedTuple):
    """The nodes of several trees, one after another, for compiled code that walks them.

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
    """Return the nodes of fitted regression trees of scikit-learn; none of no trees."""
    if not estimators:
        none, nothing = np.empty(0, np.int64), np.empty(0)
        return Trees(none, none, nothing, none, none, nothing)
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


def one_thread(user: str = "sklearn.ensemble") -> AbstractContextManager[Any]:
    """Keep the libraries that a module loads to one thread.

    The engine limits the libraries that are loaded when a run begins; OpenMP is loaded later. More threads gain nothing
    on so few rows, and they spin while they wait: next to another busy process a run took ten times as long.
    """
    return _threads(user).limit(limits=1)


@cache
def _threads(user: str) -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    import_module(user)  # sklearn.ensemble loads OpenMP
    return ThreadpoolController()  # takes milliseconds, once


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the warning of a network that stops early on purpose, and skip checks."""
    from sklearn import config_context
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(), config_context(assume_finite=True, skip_parameter_validation=True):
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
