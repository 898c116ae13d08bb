"""The site of all studies: leaderboards over studies, a report for each, numbers as files; and the page of fleets."""

import csv
import gzip
import json
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest

from bbo_suite import UserError
from bbo_suite.figures import fleet as figures
from bbo_suite.report import fleet, page
from bbo_suite.site import write
from bbo_suite.site.overview import boards, overview
from bbo_suite.site.studies import Entry, best_known, read, sources
from bbo_suite.store.run_table import read_studies

TABLE = """problem,strategy,seed,uses_structure,default,best,evaluations,budget
p/a,x,0,False,8,4,100,100
p/a,y,0,True,8,inf,100,100
p/a,x,0,False,8,2,900,1000
"""


@pytest.fixture
def studies(studies_in, tmp_path):
    return studies_in(tmp_path / "results")


@pytest.fixture
def stored(studies):
    """Two studies that share a task and a run; one of them has a run that is not finished."""
    runs = studies.finals("p/a", x=[4, 2], y=[8, 8]) | studies.finals("p/b", x=[4, 4], y=[2, 2])
    studies.add(runs, name="first", optimum=1.0)
    studies.add({("p/a", "x", 0): [8, 4], ("p/a", "z", 0): [8, np.inf], ("q/c", "x", 0): [8, 3]}, name="second")
    studies.add({("q/d", "x", 0): [8, 2]}, name="second", fingerprint="f1")
    studies.add({("p/a", "y", 5): [8]}, name="second", ended="", budget=2)
    return studies.path


def studies_in_folder(path):
    return [read(source) for source in sources(path)]


def entries(path):
    return [Entry.of(study, page(study)) for study in studies_in_folder(path)]


@pytest.mark.slow
def test_every_study_has_a_report_and_is_linked(stored, tmp_path):
    index = write(stored, tmp_path / "out").read_text()
    for name in ("first", "second"):
        assert f'href="{name}/report.html"' in index
        assert f"<title>{name}: report</title>" in (tmp_path / "out" / name / "report.html").read_text()
    assert 'href="runs.csv"' in index and 'href="points.json"' in index


@pytest.mark.slow
def test_the_first_page_begins_with_the_answer_its_figure_and_one_board(stored, tmp_path):
    index = write(stored, tmp_path / "out").read_text()
    parts = ('class="first"', "<svg ", 'id="board"', 'id="studies"', 'id="p-2"')
    places = [index.index(part) for part in parts]
    assert places == sorted(places) and "geometric mean speedup" in index[: places[1]]


def test_the_board_over_all_problems_has_shares_of_the_best_known_gain(stored):
    runs = [run for entry in entries(stored) for run in entry.runs]
    shown = {row[0].text: row[1] for row in overview(runs, best_known(runs)).table.rows}
    # equal contents have the optimum 1, and the default costs 8: the best gain is 7. On q/d, x is alone
    shares = [np.mean([1 / 7, 3 / 7]), 1 / 7, (8 / 3 - 1) / 7, 1.0]
    assert shown["x"].number == pytest.approx(np.mean(shares)) and shown["x"].text.endswith("(4)")
    assert shown["y"].number == pytest.approx(np.mean([0, 3 / 7]))


@pytest.mark.slow
def test_many_reports_are_written_by_processes_and_what_is_left_out_is_said(studies, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("bbo_suite.site.default_jobs", lambda runs, timed: 2)
    for name in ("one", "two"):
        studies.add({("p/a", "x", 0): [8, 4], ("p/a", "y", 0): [8, 2]}, name=name)
    rows = studies.folder("p/a", "x", name="two") / "rows.csv"
    rows.write_text(rows.read_text().replace(",ok,", ",no,"))
    shown = []
    write(studies.path, tmp_path / "out", show=lambda *place: shown.append(place))
    assert [place[:2] for place in shown] == [(0, 2), (1, 2), (2, 2), (2, 2)]
    assert {path.parent.name for path in (tmp_path / "out").glob("*/report.html")} == {"one", "two"}
    assert capsys.readouterr().err.count("left out") == 1


def test_a_board_compares_the_runs_of_all_studies_once(stored):
    found = entries(stored)
    (p, q) = boards(found, best_known(run for entry in found for run in entry.runs))
    assert (p.family, p.budget, [entry.name for entry in p.studies]) == ("p", 2, ["first", "second"])
    assert (q.family, [entry.name for entry in q.studies]) == ("q", ["second"])
    counts = {row[0].text: row[4].number for row in p.table.rows}
    assert counts["x"] == 4  # the run on p/a with seed 0 is in both studies, the unfinished one in no board


@pytest.mark.slow
def test_points_are_the_best_known_cost_over_the_cost(stored, tmp_path):
    write(stored, tmp_path)
    content = json.loads((tmp_path / "points.json").read_text())
    points = {(row["study"], row["strategy"], row["seed"], row["cost"]): row for row in content["points"]}
    assert points["second", "x", 0, 3]["points"] == pytest.approx(1 / 3)  # the optimum of that content is 1
    failed = points["second", "z", 0, 8]
    assert (failed["points"], failed["status"]) == (0.125, "budget")
    assert points["second", "y", 5, 8]["status"] == "unfinished"
    assert {row["task"] for row in content["points"]} == set(content["tasks"])
    assert content["environments"][failed["environment"]]["machine"] == {"cpu": "x"}


@pytest.mark.slow
def test_the_table_of_runs_is_read_again_as_a_published_study(stored, tmp_path):
    write(stored, tmp_path / "one")
    (tmp_path / "published" / "both").mkdir(parents=True)
    shutil.copy(tmp_path / "one" / "runs.csv", tmp_path / "published" / "both")
    again = write(tmp_path / "published", tmp_path / "two")
    assert "first/report.html" in again.read_text() and "second/report.html" in again.read_text()
    for name in ("one", "two"):
        with (tmp_path / name / "runs.csv").open() as file:
            rows = [
                (row["study"], row["strategy"], float(row["best"]), float(row["speedup"] or 0))
                for row in csv.DictReader(file)
            ]
        assert len(rows) == 13 and rows[0] == ("first", "x", 4.0, 2.0)


def test_texts_of_the_table_stay_texts_and_are_no_formulas(studies, tmp_path):
    studies.add({("=p", "+x", 0): [8, 4]}, name="2024", fingerprint="1e5")
    write(studies.path, tmp_path / "published" / "both")
    with (tmp_path / "published" / "both" / "runs.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["problem"], row["strategy"]) == ("'=p", "'+x")
    (again,) = studies_in_folder(tmp_path / "published")
    assert (again.name, again.runs[0].problem, again.runs[0].strategy) == ("2024", "=p", "+x")
    assert again.runs[0].head["fingerprint"] == "1e5"


def test_each_budget_of_a_table_is_a_study(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "runs.csv").write_text(TABLE)
    short, long = studies_in_folder(tmp_path)
    assert [(study.name, len(study.runs)) for study in (short, long)] == [("s-100", 2), ("s-1000", 1)]
    assert [run.speedup(run.reach) for run in (*short.runs, *long.runs)] == [2.0, 0.0, 4.0]
    assert long.runs[0].ended == "covered"


@pytest.mark.slow
def test_a_report_of_results_says_nothing_about_how_soon(tmp_path):
    (tmp_path / "in" / "s").mkdir(parents=True)
    (tmp_path / "in" / "s" / "runs.csv").write_text(TABLE)
    write(tmp_path / "in", tmp_path / "out")
    report = (tmp_path / "out" / "s-100" / "report.html").read_text()
    assert "Only the result of each run is kept" in report and 'id="times"' not in report


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("problem,strategy\np/a,x\n", "it has no column 'seed'"),
        (TABLE.replace("p/a,x,0,False,8,4", "p/a,x,zero,False,8,4"), "is not a table of runs .*zero"),
        (TABLE.replace("x,0,False,8,4", "x,0,no,8,4"), "uses_structure is neither"),
        (TABLE.replace("8,4,100", "inf,4,100"), "a default or a best cost is no number"),
        (TABLE.replace("8,4,100", "8,4,0"), "a run has no evaluation"),
        (TABLE + TABLE.splitlines()[1], "it has a run twice"),
        (TABLE.replace("8,4,100", f"8,4,{10**30}"), "is not a table of runs"),
        ("", "is not a table of runs"),
    ],
)
def test_another_table_is_named(tmp_path, text, message):
    (tmp_path / "runs.csv").write_text(text)
    with pytest.raises(UserError, match=message):
        list(read_studies(tmp_path / "runs.csv"))


@pytest.mark.parametrize("cut", [slice(0, 40), slice(2, None)])
def test_a_packed_table_that_is_damaged_is_named(tmp_path, cut):
    (tmp_path / "runs.csv.gz").write_bytes(gzip.compress(TABLE.encode())[cut])
    with pytest.raises(UserError, match=r"cannot read .*runs.csv.gz: (Compressed file ended|Not a gzipped file)"):
        list(read_studies(tmp_path / "runs.csv.gz"))


@pytest.mark.slow
def test_a_table_of_something_else_is_left_out_with_a_sentence(stored, suite, tmp_path):
    (stored / "other").mkdir()
    (stored / "other" / "runs.csv").write_text("program,cost\na,1\n")
    done = suite("site", "--results", stored, "--out", tmp_path / "out")
    assert done.code == 1 and done.err.count("left out") == 1
    assert "left out" in done.err and "other/runs.csv" in done.err and "no column 'problem'" in done.err


RESULTS = Path(__file__).parents[3] / "results"


@pytest.mark.slow
def test_published_tables_are_read(capsys):
    found = {study.name: len(study.runs) for study in studies_in_folder(RESULTS)}
    assert {"strategies-50", "strategies-10000"} <= {*found} and sum(found.values()) > 10_000
    tables = [file for file in RESULTS.rglob("*runs.csv") if "level" in file.read_text().partition("\n")[0].split(",")]
    assert tables and not [
        text for text in capsys.readouterr().err.splitlines() if any(str(file) in text for file in tables)
    ]


@pytest.mark.slow
@pytest.mark.thorough
def test_published_tables_are_compared():
    found = [Entry.of(study, page(study)) for study in studies_in_folder(RESULTS)]
    known = best_known(run for entry in found for run in entry.runs)
    assert {"fusion", "tile"} <= {board.family for board in boards(found, known)}


def test_an_empty_folder_is_an_error(tmp_path):
    with pytest.raises(UserError, match="there is no study in"):
        write(tmp_path / "in", tmp_path / "out")


@pytest.mark.slow
def test_the_command_prints_the_first_page(stored, suite, tmp_path):
    done = suite("site", "--results", stored, "--out", tmp_path / "out", "--quiet")
    assert (done.code, done.out.strip(), done.err) == (0, str(tmp_path / "out" / "index.html"), "")
    done = suite("site", "--results", stored, "--out", tmp_path / "again")
    assert "writing: 2/2 studies, done" in done.err


def test_names_are_text(studies, tmp_path):
    studies.add({("p/<b>", "<script>alert(1)</script>", 0): [8, 4]}, name="<i>&")
    index = write(studies.path, tmp_path / "out").read_text()
    assert "<script>alert" not in index and "<b>" not in index and "<i>" not in index
    link = re.search('href="([^"]*/report.html)"', index)[1]
    assert (tmp_path / "out" / unquote(link)).exists()


@pytest.mark.slow
def test_a_name_in_a_table_leads_to_no_other_folder(tmp_path):
    (tmp_path / "in" / "s").mkdir(parents=True)
    lines = TABLE.splitlines()[:2]
    names = ("../../escaped", "/tmp/escaped", "a/../b", "same", "same")
    for number, name in enumerate(names):
        (tmp_path / "in" / "s" / f"{number}-runs.csv").write_text(f"study,{lines[0]}\n{name},{lines[1]}\n")
    write(tmp_path / "in", tmp_path / "out")
    reports = [path.relative_to(tmp_path) for path in tmp_path.rglob("report.html")]
    assert len(reports) == len(names) and {(path.parts[0], len(path.parts)) for path in reports} == {("out", 3)}


def test_the_site_is_not_written_among_the_studies(stored):
    with pytest.raises(UserError, match="inside the folder of studies"):
        write(stored, stored / "site")


def run(folder, policy, budget, saved, kernels):
    (folder / f"{policy}-{budget}").mkdir(parents=True)
    end = {"policy": policy, "budget": budget, "seed": 0, "saved": saved, "kernels_a_day": kernels, "lost": 0.0}
    end |= {"savings_over_cost": 30.0, "days_to_recover": None}
    (folder / f"{policy}-{budget}" / fleet.END).write_text(json.dumps(end))
    days = [{"day": day, "version": int(day > 2), "saved": saved, "potential": 0.2} for day in (1, 2, 3)]
    pd.DataFrame(days).to_csv(folder / f"{policy}-{budget}" / fleet.DAYS, index=False)


@pytest.fixture
def folder(tmp_path):
    for budget in (100, 1000):
        run(tmp_path / "<s>", "oracle", budget, 0.1, 5)
        run(tmp_path / "<s>", "saving", budget, 0.05, 2)
        run(tmp_path / "<s>", "model", budget, 0.04 + budget / 20_000, 60)
    return tmp_path / "<s>"


def test_sentences_name_the_highest_policy_its_regret_and_what_the_model_is_worth(folder):
    said = list(fleet.sentences(fleet.read(folder)[0]))
    assert said[0] == (
        "With 100 chip-seconds a day, 1 fleet is too little for a test of which of 2 policies is best: --repeats 6."
    )
    assert said[1].startswith("Highest mean: saving with 5.00% of the fleet's chip time, 50.0% less than an oracle")
    assert said[4].startswith("Highest mean: model with 9.00% of the fleet's chip time, 10.0% less than an oracle")
    assert "tunes 30.0 times as many kernels" in said[2]


@pytest.mark.parametrize(
    ("fleets", "shift", "said"),
    [
        (6, 0.01, "high is the best of 2 policies over 6 fleets (all p ≤ 0.05)."),
        (6, 0.0, "cannot be told apart by a test over 6 fleets."),
        (5, 0.01, "5 fleets are too few for a test of which of 2 policies is best: --repeats 6."),
    ],
)
def test_a_policy_is_the_best_only_by_a_test(fleets, shift, said):
    low = [(0.05 + seed / 100) for seed in range(fleets)]
    high = [saved + (seed % 2 - 0.4) / 1000 + shift for seed, saved in enumerate(low)]
    rows = [
        (name, 100.0, seed, saved) for name, own in (("high", high), ("low", low)) for seed, saved in enumerate(own)
    ]
    runs = pd.DataFrame(rows, columns=["policy", "budget", "seed", "saved"])
    runs = runs.assign(regret=None, savings_over_cost=1.0, kernels_a_day=1.0)
    assert next(fleet.sentences(runs)).endswith(said)


@pytest.mark.slow
def test_a_page_has_figures_and_escapes_names(folder):
    page = fleet.write(folder).read_text()
    assert page.count("<svg") == 2 and "<title>&lt;s&gt;" in page and "of the fleet" in page
    assert 'id="days.' in page and 'id="budgets.' in page


def test_figures_show_every_policy_and_the_release(folder):
    runs, days = fleet.read(folder)
    figure = figures.days(days)
    lines = figure.axes[0].get_lines()
    assert {line.get_label() for line in lines} >= {"oracle", "saving", "model"}
    assert [
        line.get_xdata()[0] for line in lines if line.get_linestyle() == ":" and len(set(line.get_xdata())) == 1
    ] == [3]
    drawn = next(line for line in figures.budgets(runs).axes[0].get_lines() if line.get_label() == "model")
    assert list(drawn.get_ydata()) == [4.5, 9.0]


def test_without_a_finished_run_there_is_one_sentence(tmp_path):
    with pytest.raises(UserError, match="there is no finished run"):
        fleet.write(tmp_path)
