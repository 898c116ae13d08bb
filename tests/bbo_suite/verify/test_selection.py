"""The few candidates that serve several programs best: which are selected, and that they are measured again."""

import itertools
import json

import numpy as np
import pytest

import bbo_suite
from bbo_suite import UserError
from bbo_suite.registry import Registry
from bbo_suite.verify import selection
from bbo_suite.verify.selection import best_rows, selections, shared_ratio

TWO = "several:ordering/train-40-a+ordering/train-40-b"


def least(ratios, k):
    return min(shared_ratio(ratios[list(rows)]) for rows in itertools.combinations(range(len(ratios)), k))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_best_set_is_found_by_trying_all_and_nearly_always_by_exchange(k, monkeypatch):
    rng, gaps = np.random.default_rng(k), []
    for _ in range(20):
        ratios = rng.lognormal(size=(12, 6))
        ratios[0, 3] = np.inf
        assert shared_ratio(ratios[best_rows(ratios, k)]) == pytest.approx(least(ratios, k))
        monkeypatch.setattr(selection, "_EXHAUSTIVE", 0)
        gaps.append(shared_ratio(ratios[best_rows(ratios, k)]) / least(ratios, k))
        monkeypatch.undo()
    assert max(gaps) < 1.2 and np.median(gaps) == pytest.approx(1.0)
    assert best_rows(np.ones((2, 3)), 5) == [0, 1]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    results = tmp_path_factory.mktemp("results")
    settings = {"budget": 60, "batch": 20, "jobs": 1, "results": results, "study": "shared", "keep_all": True}
    bbo_suite.run("random", [TWO, "ordering/small-a"], quiet=True, **settings)
    return results


def test_selected_candidates_are_measured_again_and_serve_better_than_one(study):
    (found,) = selections(Registry(), "shared", study, 2, [TWO])
    (one,) = selections(Registry(), "shared", study, 1, [TWO])
    best = bbo_suite.load("shared", study).query("problem == @TWO")["value"].min()
    assert found.candidates == 60 and found.programs == ("ordering/train-40-a", "ordering/train-40-b")
    assert 1 / one.speedup == pytest.approx(best) and found.alone == pytest.approx(best)
    assert found.speedup >= one.speedup and found.facts()["speedup"] == found.speedup
    with pytest.raises(UserError, match="--keep needs several"):
        list(selections(Registry(), "shared", study, 2, ["ordering/small-a"]))


def test_best_prints_the_selection_and_refuses_it_beside_minimal(study, suite):
    command = ("best", "shared", "--keep", 2, "--problem", TWO, "--results", study)
    done = suite(*command, "--json")
    printed = json.loads(done.out)
    assert len(printed["kept"]) == 2 and set(printed["uses"].values()) <= {0, 1} and done.code == 0
    refused = suite(*command, "--minimal")
    assert refused.code == 1 and "--keep and --minimal" in refused.err
