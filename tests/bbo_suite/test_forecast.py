"""Forecasts: what was like a run went on as it will; and the command."""

import json

import numpy as np
import pandas as pd
import pytest

import bbo_suite
from bbo_suite import UserError
from bbo_suite.forecast import CUTOFFS, LEAST, Forecaster


def curves(slope, family="a", runs=200, parameters=100):
    """Return curves whose gains grow with a power of the evaluations, from many levels."""
    levels = np.geomspace(0.001, 0.1, runs)[:, None]
    gains = pd.DataFrame(levels * np.array(CUTOFFS) ** slope, columns=[str(n) for n in CUTOFFS])
    return pd.concat([pd.DataFrame({"family": [family] * runs, "parameters": [parameters] * runs}), gains], axis=1)


@pytest.mark.parametrize(("slope", "wanted"), [(0.5, 10**0.5), (0.2, 10**0.2), (0.0, 1.0)])
def test_a_run_is_forecast_to_go_on_as_those_that_looked_alike(slope, wanted):
    known = pd.concat([curves(0.5), curves(0.2, "b"), curves(0.0, "c")])
    gain = lambda n: 0.03 * (n / 200) ** slope  # noqa: E731
    found = Forecaster(known).forecast(gain, 200, 100, 2_000)
    assert found.evaluations == 2_000 and found.low <= found.median <= found.high
    assert found.median == pytest.approx(0.03 * wanted, rel=0.1)


def test_a_forecast_is_never_below_what_a_run_has_and_its_interval_widens():
    shipped = Forecaster()
    made = [
        shipped.forecast(lambda n: 0.02 * min(n, 150) / 150, 200, 500, target) for target in (220, 400, 2_000, 10_000)
    ]
    assert all(each.low >= 0.02 - 1e-9 for each in made)
    widths = [each.high - each.low for each in made]
    assert widths == sorted(widths) and [each.median for each in made] == sorted(each.median for each in made)


def test_what_cannot_be_forecast_gets_a_sentence():
    for evaluations, target in ((LEAST - 1, 100), (100, 100), (100, 50), (100, 100_000)):
        with pytest.raises(UserError, match="forecast"):
            Forecaster().forecast(lambda n: 0.0, evaluations, 10, target)


def test_the_command_forecasts_each_strategy_and_no_gain_beyond_the_optimum(tmp_path, suite):
    space = "recorded/tile-transformer"
    bbo_suite.run("annealing", space, budget=60, repeats=2, study="s", results=tmp_path / "results", quiet=True, jobs=1)
    (row,) = [json.loads(line) for line in suite("forecast", "s", "--at", "600", "--json").out.splitlines()]
    problem = bbo_suite.problem(space)
    most = bbo_suite.evaluate(problem, problem.default_row()[None]).values[0] / problem.optimum - 1
    assert (row["strategy"], row["runs"], row["evaluations"]) == ("annealing", 2, 60)
    (made,) = row["forecasts"]
    assert row["gain"] <= made["low"] <= made["median"] <= made["high"] <= most + 1e-9 and made["evaluations"] == 600
    assert "after 120" in suite("forecast", "s").out
    assert suite("forecast", "s", "--at", "10").code == 1
