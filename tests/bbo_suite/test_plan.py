"""A plan's runs are studies; its table takes what has ended, and tells what differs."""

import pandas as pd
import pytest

from bbo_suite import Search
from bbo_suite.plan import plan_name, read_plans

FILE = """
from bbo_suite import Plan, Search
PLANS = [
    Plan(["ordering/small-a"], ["annealing", "random"], budgets=(10, 20), seeds=2, batch=5, cutoffs=(4,)),
    Plan(["ordering/small-a"], {"hot": Search("annealing", {"heat": 3.0})}, (10,), seeds=[1, 2, 5], plain_seeds=True),
]
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "mine").mkdir()
    file = tmp_path / "mine" / "plan.py"
    file.write_text(FILE)
    return file


def test_a_plan_is_read_with_its_name(file):
    plans = read_plans(file)
    assert [len(plan.searches()) for plan in plans] == [2, 1] and plan_name(file) == "mine"
    assert plans[1].searches() == {"hot": Search("annealing", {"heat": 3.0})}


@pytest.mark.slow
def test_a_plan_is_run_resumed_and_compared_with_its_table(file, suite):
    assert suite("run", "--plan", file, "--quiet").code == 0
    table = pd.read_csv(file.parent / "runs.csv")
    assert table.groupby(["strategy", "budget"]).size().to_dict() == {
        **{(name, budget): 2 for name in ("annealing", "random") for budget in (10, 20)},
        ("hot", 10): 3,
    }
    assert table[table["strategy"] != "hot"]["best@4"].ge(table["best"].dropna().min()).all()
    again = suite("run", "--plan", file, "--quiet", "--only", "1/2", "--results", "other")
    assert again.code == 0 and "0 runs are new; 6 are equal" in again.out
    changed = table.assign(best=table["best"] / 2)
    changed.to_csv(file.parent / "runs.csv", index=False)
    different = suite("run", "--plan", file, "--quiet")
    assert different.code == 1 and "ordering/small-a hot 10 5 differs" in different.err


def test_runs_with_a_time_limit_are_not_compared(file, suite):
    file.write_text(FILE.replace("seeds=2", "max_seconds=60.0").replace("plain_seeds=True", "max_seconds=60.0"))
    assert suite("run", "--plan", file, "--quiet").code == 0
    table = pd.read_csv(file.parent / "runs.csv")
    table.assign(best=table["best"] / 2).to_csv(file.parent / "runs.csv", index=False)
    again = suite("run", "--plan", file, "--quiet")
    assert again.code == 0 and "0 runs are new; 0 are equal" in again.out


def test_a_share_adds_its_runs_to_the_table_and_keeps_its_other_columns(file, suite):
    assert suite("run", "--plan", file, "--quiet", "--only", "1/2").code == 0
    table = pd.read_csv(file.parent / "runs.csv")
    table.assign(note="mine").to_csv(file.parent / "runs.csv", index=False)
    assert suite("run", "--plan", file, "--quiet").code == 0
    whole = pd.read_csv(file.parent / "runs.csv")
    assert len(table) == 6 and len(whole) == 11 and (whole["note"] == "mine").sum() == 6
    assert not whole.duplicated(["problem", "strategy", "budget", "seed"]).any()
    assert sorted(path.name for path in file.parent.iterdir() if path.is_file()) == ["plan.py", "runs.csv"]


@pytest.mark.slow
def test_a_table_with_few_digits_is_compared_to_these(file, suite):
    file.write_text(FILE.replace("plain_seeds=True", "digits=3"))
    assert suite("run", "--plan", file, "--quiet").code == 0
    table = pd.read_csv(file.parent / "runs.csv")
    table.assign(best=table["best"] * 1.0005).to_csv(file.parent / "runs.csv", index=False)
    assert suite("run", "--plan", file, "--quiet").code == 0


def test_plans_in_one_folder_have_a_table_each(file, suite):
    beside = file.with_name("short.py")
    beside.write_text("from bbo_suite import Plan\nPLAN = Plan(['ordering/small-a'], ['random'], (5,))")
    assert suite("run", "--plan", beside, "--quiet").code == 0
    assert [path.name for path in file.parent.glob("*.csv")] == ["short-runs.csv"]


def test_plain_seeds_give_other_draws_and_are_part_of_a_run(file, suite):
    assert suite("run", "--plan", file, "--quiet").code == 0
    other = file.parents[1] / "other" / "mine" / "plan.py"
    other.parent.mkdir(parents=True)
    other.write_text(FILE.replace(", plain_seeds=True", ""))
    refused = suite("run", "--plan", other, "--quiet")
    assert refused.code == 1 and "plain_seeds" in refused.err


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "has no plan"), ("PLAN = 3", "has no plan"), ("PLAN = (", "syntax error"), ("1 / 0", "ZeroDivisionError")],
)
def test_a_file_without_a_plan_is_refused(file, suite, text, words):
    file.write_text(text)
    found = suite("run", "--plan", file)
    assert found.code == 1 and words in found.err


def test_what_a_plan_decides_is_refused_beside_it(file, suite):
    found = suite("run", "--plan", file, "--budget", "3")
    assert found.code == 1 and "--budget is decided by the plan" in found.err
