"""The candidate regressors, their score and their selection."""

import math
import warnings

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold

from bbo_strategies.regressors import candidates, fit, light, score, select


def test_score_is_r_squared_on_the_held_out_folds():
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(90, 5)), generator.normal(size=90)
    y += x[:, 0]
    expected = []
    for train, test in KFold(3, shuffle=True, random_state=4).split(x):
        expected.append(r2_score(y[test], Ridge(10.0).fit(x[train], y[train]).predict(x[test])))
    assert score(Ridge(10.0), x, y, folds=3, seed=4) == pytest.approx(np.mean(expected))


def test_selection_takes_the_good_ones_or_the_single_best():
    scores = {"ridge": 0.5, "forest": 0.49, "boosting": 0.9, "network": -3.0}
    assert select(scores, 0.5) == ["ridge", "boosting"]
    assert select(scores, 0.95) == ["boosting"]


def test_regressors_take_constant_columns_and_few_rows():
    x, y = np.ones((40, 5), np.float32), np.random.default_rng(0).normal(size=40).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for regressor in candidates(0, 40).values():
            assert math.isfinite(score(regressor, x, y, 3, 0))


def test_a_light_forest_predicts_the_same():
    x, y = np.random.default_rng(0).random((200, 6), np.float32), np.random.default_rng(1).random(200)
    forest = fit(candidates(0, 200)["forest"], x, y)
    np.testing.assert_allclose(light(forest).predict(x), forest.predict(x), rtol=1e-12)
