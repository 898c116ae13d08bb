"""Scores, which all tables and figures compare; and what a problem knows besides its default."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from bbo_toys import Toy, frame
from scipy.stats import mannwhitneyu

import bbo_suite
from bbo_suite.cli.catalogue import fact_table, facts
from bbo_suite.figures import FIGURES
from bbo_suite.registry import Registry
from bbo_suite.report import page, read_study
from bbo_suite.scores import compare, final_values, normalised_gain, over_programs

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


class Knowing(Toy):
    """A toy that knows a fast setting, a slow one and one that fails."""

    optimum = 1.0

    def baselines(self):
        """Return three costs; the default costs 5.18."""
        return {"-O3": 2.0, "-O0": 8.0, "broken": np.inf}


@pytest.fixture
def study(tmp_path):
    return bbo_suite.run(["random"], Knowing(), budget=20, repeats=2, study="s", results=tmp_path)


@pytest.mark.slow
def test_baselines_are_stored_drawn_and_tabulated(study, tmp_path):
    head = json.loads(next(tmp_path.glob("s/*/run.json")).read_text())
    assert head["baselines"] == {"-O3": 2.0, "-O0": 8.0}
    frame, default = study.frame(), head["default"]
    known = {"optimum": default, "-O3": default / 2, "-O0": default / 8}
    assert frame.attrs["baselines"] == {head["problem"]: known}
    texts = [text.get_text() for text in FIGURES["convergence"](frame)[0].axes[0].texts]
    named = " ".join(texts)
    assert "-O3" in named and "beyond the axis: " in named and "-O0 0.64" in named
    (table,) = [table for table in page(read_study("s", tmp_path)).tables if table.name == "baselines"]
    assert [(row[1].text, row[2].number) for row in table.rows] == list(known.items())
    assert [row[4].number for row in table.rows] == [row[2].number / row[3].number - 1 for row in table.rows]
    assert table.rows[2][4].text == f"{100 * ((default / 8) / table.rows[2][3].number - 1):+.2f} %"
    assert [row[-1].text for row in table.rows] == ["0 of 2", "0 of 2", "2 of 2"]


def test_a_run_that_was_stored_without_baselines_resumes(study, tmp_path):
    for file in tmp_path.glob("s/*/run.json"):
        head = json.loads(file.read_text())
        file.write_text(json.dumps({key: head[key] for key in head if key != "baselines"}))
    (rows,) = {file.read_text() for file in tmp_path.glob("s/*__0/rows.csv")}
    again = bbo_suite.run(["random"], Knowing(), budget=20, repeats=2, study="s", results=tmp_path)
    assert rows == next(tmp_path.glob("s/*__0/rows.csv")).read_text()
    assert [*again.frame().attrs["baselines"].values()] == [{"optimum": pytest.approx(5.18, abs=0.01)}]


class Bounded(Toy):
    """A toy whose default costs a thousand times the bound, and whose results are published."""

    bound, published_in = 0.005, "a journal"

    def baselines(self):
        """Return two costs that are close together."""
        return {"first team": 0.01, "second team": 0.0101}

    def evaluate(self, configs):
        """Return costs of which the best is far below the default's."""
        told = super().evaluate(configs)
        return bbo_suite.Evaluations.of(np.where(told.values < told.values.max(), told.values / 100, told.values))


@pytest.mark.slow
def test_published_costs_and_a_bound_are_stored_drawn_and_tabulated(tmp_path):
    study = bbo_suite.run(["random"], Bounded(), budget=20, batch=20, study="s", results=tmp_path)
    head = json.loads(next(tmp_path.glob("s/*/run.json")).read_text())
    assert (head["bound"], head["published_in"]) == (0.005, "a journal")
    (known,) = study.frame().attrs["baselines"].values()
    assert known["bound"] == head["default"] / 0.005
    for name in ("convergence", "speedup"):
        ax = FIGURES[name](study.frame())[0].axes[0]
        scale, limits = (ax.get_yscale(), ax.get_ylim()) if name == "convergence" else (ax.get_xscale(), ax.get_xlim())
        assert scale == "log" and 0 < limits[0] <= 1 and limits[1] > known["bound"], "it is not on the axis"
    texts = [text.get_text() for text in FIGURES["convergence"](study.frame())[0].axes[0].texts]
    assert {"bound", "first team; second team"} <= set(texts)
    (table,) = [table for table in page(read_study("s", tmp_path)).tables if table.name == "baselines"]
    assert table.rows[0][1].text == "bound" and table.note.endswith("a journal.")


@pytest.mark.slow
def test_show_prints_what_is_known_and_the_gap_of_the_default(capsys):
    known = facts(Registry(), "ordering/40x50-a")
    least = known["default"] / 4
    fact_table(known | {"bound": least, "published_in": "a journal"})
    printed = capsys.readouterr().out
    for name, cost in {"bound": least, **known["baselines"]}.items():
        gap = f"{100 * (known['default'] / cost - 1):+,.2f} %"
        assert re.search(rf"│ {name} +│ [\d.,]+ +│ {re.escape(gap)} ", printed), "its gap is not there"
    assert "+300.00 %" in printed and "published in: a journal" in printed


def test_speedups_over_programs_have_both_means_and_the_share_that_gains_enough():
    found = over_programs(pd.Series([1.0, 1.02, 2.0, 4.0]), (1, 5))
    assert (found["programs"], found["mean"], found["median"], found["most"]) == (4, 2.005, 1.51, 4.0)
    assert (found["above 1 %"], found["above 5 %"]) == (0.75, 0.5)
    assert found["geometric"] == pytest.approx(8.16**0.25) and found["low"] < found["geometric"] < found["high"]
