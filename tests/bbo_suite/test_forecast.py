"""Forecasts: what was like a run went on as it will; and the command."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bbo_suite
from bbo_suite import UserError
from bbo_suite.forecast import CUTOFFS, LEAST, Curve, Forecaster, Worth, price_of


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
    assert suite("forecast", "s", "--at", "1e1").code == 1


def test_a_run_that_has_tried_everything_keeps_its_gain():
    over = Curve(lambda n: 0.03 * min(n, 12), 12, 3, over=True)
    found = Forecaster(curves(0.5)).middle([over], 24)
    assert (found.low, found.median, found.high) == pytest.approx((0.36,) * 3)
    with pytest.raises(UserError):
        Forecaster(curves(0.5)).middle([over], 12)


def test_a_line_says_what_more_brings_and_nothing_of_what_is_short_or_exhausted():
    gain = lambda n: 0.03 * (n / 200) ** 0.5  # noqa: E731
    forecaster = Forecaster(pd.concat([curves(0.5), curves(0.5, "b")]))
    line = forecaster.outlook([Curve(gain, 200, 100)])
    low, high = (
        float(x) for x in re.search(r"1,000 would reach ([\d.]+)(?: to ([\d.]+))? %", line).groups(default="6.7")
    )
    assert line.startswith("after 200: 3 %; ") and ", 10,000 " in line
    assert low <= 100 * 0.03 * 5**0.5 * 1.05 and high >= 100 * 0.03 * 5**0.5 * 0.95
    for nothing in ({"evaluations": 49}, {"candidates": 1_000}, {"most": 0.03}, {"over": True}):
        assert forecaster.outlook([Curve(**{"gain": gain, "evaluations": 200, "parameters": 100} | nothing)]) == ""
    assert "10,000" not in forecaster.outlook([Curve(gain, 200, 100, candidates=5_000)])
    assert "100,000" not in forecaster.outlook([Curve(gain, 5_000, 100)])
    assert forecaster.outlook([Curve(gain, 6_000, 100)]) == ""  # published runs end at 10,000


def test_a_line_leaves_out_what_nobody_can_say():
    leaps, stays = curves(0.5, "b"), curves(0.5)
    later = [str(n) for n in CUTOFFS if n > 200]
    leaps[later] *= 30
    stays[later] = np.repeat(stays[["200"]].to_numpy(), len(later), axis=1)
    run = Curve(lambda n: 0.03 * (n / 200) ** 0.5, 200, 100)
    assert Forecaster(pd.concat([leaps, stays])).outlook([run]) == ""
    assert Forecaster(stays).outlook([run]) == "after 200: 3 %; 1,000 would reach 3 %, 10,000 3 %"
    fewer = "after 200: 2.91 % fewer bytes; 1,000 would reach 2.9 %, 10,000 2.9 %"
    assert Forecaster(stays).outlook([replace(run, unit="bytes")]) == fewer


def test_of_several_problems_the_best_strategy_of_three_is_told():
    known = [
        (f"p{i}", name, Curve(lambda n, g=g: g, 200, 100)) for i in range(5) for name, g in (("a", i), ("b", 9 - i))
    ]
    lines = Forecaster(pd.concat([curves(0.5), curves(0.2, "b")])).outlooks(known)
    assert [line.split(" after")[0] for line in lines] == ["b on p0", "b on p1", "b on p2"]


@pytest.mark.parametrize(("text", "price"), [("0.1%/100", 1e-5), ("2 % / 1k", 2e-5), ("worth-it", 1e-6)])
def test_prices(text, price):
    assert price_of(text) == pytest.approx(price)


@pytest.mark.parametrize("text", ["", "0%/100", "0.1/100", "0.1%", "0.1%/0.5", "-1%/100", "1%/x", "0.1%/-5", "0.1%/0"])
def test_what_is_no_price_gets_a_sentence(text):
    with pytest.raises(UserError, match="is no price"):
        price_of(text)


def test_a_run_ends_when_it_has_been_poor_twice():
    forecaster = Forecaster(pd.concat([curves(0.0), curves(0.0, "b")]))
    flat, worth = lambda n: 0.02, Worth(1e-9, 10_000, forecaster)
    assert next(n for n in range(10, 200, 10) if worth.is_over(Curve(flat, n, 100))) == 70  # looked at 50 and 70
    growing = Forecaster(pd.concat([curves(0.5), curves(0.5, "b")]))
    rising, worth = lambda n: 0.02 * n**0.5, Worth(1e-6, 10_000, growing)
    assert not any(worth.is_over(Curve(rising, n, 100)) for n in range(10, 10_000, 10))


@pytest.mark.slow
def test_a_run_that_is_not_worth_its_price_ends_stays_so_and_goes_on_at_a_lower_one(tmp_path, suite):
    given = (
        "run",
        "--problem",
        "ordering/small-a",
        "--strategy",
        "random",
        "--strategy",
        "annealing",
        "--budget",
        "2000",
    )
    given += ("--batch", "10", "--study", "s", "--quiet", "--json")
    read = lambda done: {run["strategy"]: run for run in map(json.loads, done.out.splitlines())}  # noqa: E731
    first = read(suite(*given, "--until", "50%/10"))
    assert all(run["ended"] == "price" and 50 <= run["evaluations"] < 2_000 for run in first.values())
    end = json.loads((tmp_path / "results/s" / first["random"]["path"].split("/")[-1] / "end.json").read_text())
    assert end["reason"] == "price" and end["price"] == pytest.approx(0.05)
    assert read(suite(*given, "--until", "50%/10")) == first and read(suite(*given, "--until", "99%/10")) == first
    assert suite("validate", "s").code == 0 and "not expected to be worth" in report(suite, tmp_path)
    whole = read(suite(*given))
    assert all(run["ended"] == "budget" and run["evaluations"] == 2_000 for run in whole.values())
    again = bbo_suite.run("random", "ordering/small-a", budget=2000, batch=10, study="t", quiet=True, jobs=1)
    assert again.runs()["best"][0] == whole["random"]["best"]
    assert "is no price" in suite(*given, "--until", "cheap").err


def report(suite, folder):
    assert suite("report", "s").code == 0
    return (folder / "results/s/report.html").read_text()
