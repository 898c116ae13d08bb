"""Scores: the values that all tables and figures compare, and the comparison of two strategies."""

import numpy as np
import pandas as pd
import pytest
from bbo_toys import frame
from scipy.stats import mannwhitneyu

from bbo_suite.scores import compare, final_values, normalised_gain

GAINS = {
    ("p/a", "x", 50): [2.0, 2.1, 2.2, 2.3, 2.4],
    ("p/a", "y", 50): [1.0, 1.1, 1.2, 1.3, 1.4],
    ("p/b", "x", 50): [1.0, 1.0, 1.0, 1.0, 1.0],
    ("p/b", "y", 50): [1.5, 1.5, 1.5, 1.5, 1.5],
    ("p/c", "x", 50): [1.0, 1.3],
    ("p/c", "y", 50): [1.1, 1.2],
    ("p/d", "x", 50): [1.0],
    ("p/d", "y", 50): [2.0],
    ("p/e", "x", 50): [1.0, 2.0],
    ("p/a", "x", 200): [5.0, 5.0, 5.0, 5.0, 5.0],
}


@pytest.fixture
def runs():
    rows = [(*key, seed, value) for key, values in GAINS.items() for seed, value in enumerate(values)]
    return pd.DataFrame(rows, columns=["problem", "strategy", "budget", "seed", "speedup"])


def test_two_strategies_on_each_problem_that_both_ran(runs):
    found = compare(runs, (("x", 50), ("y", 50))).set_index("problem")
    assert found.index.tolist() == ["p/a", "p/b", "p/c", "p/d"]
    assert found["ahead"].tolist() == [1, -1, 0, 0]
    assert found["p"].tolist()[:2] == [pytest.approx(2 / 252)] * 2  # exact, with ties too: one split of 252 each way
    assert mannwhitneyu(GAINS["p/b", "x", 50], GAINS["p/b", "y", 50]).pvalue < found["p"]["p/b"]
    assert np.isnan(found.loc["p/d", ["p", "holm"]].astype(float)).all()  # single runs are not tested
    assert found["holm"]["p/a"] == pytest.approx(3 * found["p"]["p/a"])
    assert found.loc["p/a", ["runs", "other_runs", "mean", "other_mean"]].tolist() == [5, 5, 2.2, 1.2]


def test_the_same_strategy_with_two_budgets(runs):
    (row,) = compare(runs, (("x", 200), ("x", 50))).to_dict("records")
    assert (row["problem"], row["mean"], row["ahead"]) == ("p/a", 5.0, 1)


def test_two_strategies_that_share_no_problem(runs):
    assert compare(runs[runs["problem"] == "p/e"], ("x", "y")).empty


def test_a_normalised_gain_is_a_share_of_the_best_known_gain():
    assert normalised_gain(1.5, 2.0) == 0.5 and normalised_gain(0.5, 1.25) == -2
    assert np.isnan(normalised_gain(1.00001, 1.00002)) and np.isnan(normalised_gain(2, np.inf))


def test_values_of_strategies_over_problems():
    made = frame({("p", "a", 0): [8.0, 4.0], ("p", "a", 1): [8.0, 2.0], ("p", "b", 0): [8.0], ("q", "b", 0): [4.0]})
    values = final_values(made)
    assert {key: runs.tolist() for key, runs in values.speedups.items()} == {
        ("p", "a"): [2, 4],
        ("p", "b"): [1],
        ("q", "b"): [2],
    }
    assert values.complete.shape == (1, 2) and values.by_rank == ["a", "b"]
    assert values.best_mean("p", "b") == 3 and next(mean.low for mean in values.means) == 2.0
    assert final_values(made) is values  # computed once for a frame
