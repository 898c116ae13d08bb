"""What a problem knows besides its default is stored with its runs, drawn and tabulated, and changes no run."""

import json
import re

import numpy as np
import pytest
from bbo_toys import Toy

import bbo_suite
from bbo_suite.cli.catalogue import fact_table, facts
from bbo_suite.figures import FIGURES
from bbo_suite.registry import Registry
from bbo_suite.report import page, read_study


class Knowing(Toy):
    """A toy that knows a fast setting, a slow one and one that fails."""

    optimum = 1.0

    def baselines(self):
        """Return three costs; the default costs 5.18."""
        return {"-O3": 2.0, "-O0": 8.0, "broken": np.inf}


@pytest.fixture
def study(tmp_path):
    return bbo_suite.run(["random"], Knowing(), budget=20, repeats=2, study="s", results=tmp_path)


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
