"""Studies, and plans: their runs are studies, and their table takes what has ended, and tells what differs."""

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pandas as pd
import pytest
from bbo_toys import contents, environment, rows_of

import bbo_suite
from bbo_suite import Search, UserError
from bbo_suite.files.reading import read_json
from bbo_suite.files.writing import write_json
from bbo_suite.plan import plan_name, read_plans
from bbo_suite.registry import Registry
from bbo_suite.runs.processes import default_jobs, run_all
from bbo_suite.runs.runner import Display, run_study
from bbo_suite.runs.study_plan import StudyPlan, machine_facts

PROBLEM = """
import os
import numpy as np
from bbo_suite import Evaluations, Problem, Space

class Mine(Problem):
    instances = ("a", "größe")

    def __init__(self, instance):
        self.space, self.default = Space([3] * 6), np.zeros(6, int)
        self.weights = np.random.default_rng(len(instance)).random(6)

    def evaluate(self, configs):
        if os.environ.get("MINE") == "crash" and len(configs) > 1:
            os._exit(9)
        return Evaluations.of(1 + configs @ self.weights)
"""
STRATEGY = """
from dataclasses import dataclass
import numpy as np
from bbo_suite import Moves, Strategy, option

@dataclass(frozen=True)
class MineOptions:
    changes: int = option(1, "changes", low=1, high=6)
    sizes: tuple = (3, 4)

class Mine(Strategy):
    Options = MineOptions

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.best, self.cost = self.task.default, np.inf

    def ask(self, n):
        counts = np.full(n, self.options.changes)
        return Moves(self.task.space).mutate(np.tile(self.best, (n, 1)), counts, self.rng)

    def tell(self, configs, values):
        if values.min() < self.cost:
            self.best, self.cost = configs[values.argmin()], values.min()
"""


@pytest.fixture
def registry(tmp_path):
    (tmp_path / "mine.py").write_text(PROBLEM, encoding="utf-8")
    (tmp_path / "climb.py").write_text(STRATEGY, encoding="utf-8")
    return Registry((tmp_path / "mine.py", tmp_path / "climb.py"))


def made(registry, tmp_path, name="s", problems=("mine/a",), strategies=("climb", "random"), changes=1, **settings):
    options = {strategy: registry.strategy(strategy).Options() for strategy in strategies}
    if "climb" in options:
        options["climb"] = dataclasses.replace(options["climb"], changes=changes)
    settings = {"budget": 30, "batch": 7, "repeats": 2, **settings}
    return StudyPlan(name, tmp_path / "results", registry, tuple(problems), options, **settings)


def do(study, jobs=1, stop="stop"):
    study.claim()
    outcomes = list(run_all(study, study.prepare(), jobs, study.results.parent / stop))
    assert not [outcome.error for outcome in outcomes if outcome.error]
    return outcomes


def all_rows(study):
    return {path.parent.name: rows_of(path.parent) for path in sorted(study.path.glob("*/rows.csv"))}


@pytest.mark.slow
def test_two_processes_give_the_rows_of_one(registry, tmp_path):
    one, two = (made(registry, tmp_path, name, ["mine/a", "mine/größe"]) for name in ("one", "two"))
    assert all(outcome.complete for outcome in do(one, 1))
    outcomes = do(two, 2)
    assert all(outcome.complete for outcome in outcomes) and len(outcomes) == 8
    assert len(all_rows(one)) == 8 and all_rows(two) == all_rows(one)
    names = sorted(path.name for path in two.path.glob("*/"))
    assert names[:2] == ["mine--a__climb__0", "mine--a__climb__1"] and all(name.isascii() for name in names)


@pytest.mark.slow
def test_workers_that_die_name_their_runs_and_the_study_resumes(registry, tmp_path, monkeypatch):
    study = made(registry, tmp_path, strategies=["climb"])
    monkeypatch.setenv("MINE", "crash")
    study.claim()
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown()  # workers that are there already do not see the variable
    died = [outcome.error for outcome in run_all(study, study.prepare(), 2, tmp_path / "stop")]
    assert [error.partition(":")[0] for error in died] == [f"climb on mine/a, seed {seed}" for seed in (0, 1)]
    monkeypatch.delenv("MINE")
    get_reusable_executor().shutdown()
    assert all(outcome.complete for outcome in do(study))


@pytest.mark.slow
def test_a_study_grows_by_strategies_problems_and_repeats(registry, tmp_path):
    first = made(registry, tmp_path, strategies=["random"], repeats=1)
    do(first)
    before = {path: contents(path) for path in first.path.glob("*/")}
    larger = made(registry, tmp_path, problems=["mine/größe", "mine/a"], repeats=3)
    do(larger)
    assert len(all_rows(larger)) == 12
    assert all(contents(path) == files for path, files in before.items())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"budget": 31}, "study 's' was made with budget 30, not 31; choose another --study, or the same"),
        ({"batch": 8}, "study 's' was made with batch 7, not 8"),
        ({"changes": 2}, 'climb__0 holds a run with options {"changes": 1, .*}, not {"changes": 2, .*; choose another'),
    ],
)
def test_other_settings_are_refused_and_nothing_is_changed(registry, tmp_path, change, message):
    study = made(registry, tmp_path)
    do(study)
    before = {path: contents(path) for path in study.path.glob("*/")}
    other = made(registry, tmp_path, **change)
    with pytest.raises(UserError, match=message):
        do(other)
    assert {path: contents(path) for path in study.path.glob("*/")} == before


def test_a_problem_that_changed_is_refused(registry, tmp_path):
    study = made(registry, tmp_path)
    do(study)
    (tmp_path / "new").mkdir()
    for name in ("mine.py", "climb.py"):
        text = (tmp_path / name).read_text(encoding="utf-8").replace("1 + configs", "2 + configs")
        (tmp_path / "new" / name).write_text(text, encoding="utf-8")
    changed = made(Registry((tmp_path / "new" / "mine.py", tmp_path / "new" / "climb.py")), tmp_path)
    contents = r'fingerprint "[0-9a-f]{16}", not "[0-9a-f]{16}"'
    with pytest.raises(UserError, match=contents):
        do(changed)


def test_a_strategy_whose_code_changed_is_refused(registry, tmp_path):
    options = {"strategies": ["portfolio"], "repeats": 1}
    study = made(registry, tmp_path, **options)
    chosen = {"portfolio": dataclasses.replace(study.strategies["portfolio"], members="climb,random")}
    study = dataclasses.replace(study, strategies=chosen)
    (outcome,) = do(study)
    head = read_json(outcome.path / "run.json")
    assert set(head["code"].partition("=")[0].split()) == {"climb"} and "code" not in study.prepare()[0].run.identity()
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "climb.py").write_text(f"HELPER = 1\n{STRATEGY}", encoding="utf-8")
    changed = Registry((tmp_path / "mine.py", tmp_path / "new" / "climb.py"))
    with pytest.raises(UserError, match="other code of strategy portfolio"):
        do(dataclasses.replace(study, registry=changed))
    del head["code"], head["check"]  # a run of before
    write_json(outcome.path / "run.json", head)
    with pytest.raises(UserError, match="no version of the code"):
        do(study)
    assert len(bbo_suite.load("s", study.results)) == 30


def test_the_same_study_again_does_nothing_and_a_stopped_one_goes_on(registry, tmp_path):
    study = made(registry, tmp_path)
    (tmp_path / "stop").touch()
    assert not any(outcome.complete for outcome in do(study))
    assert all(outcome.complete for outcome in do(study, stop="other"))
    before = {path: contents(path) for path in study.path.glob("*/")}
    assert all(outcome.complete for outcome in do(study))  # the stop file has no say over what is complete
    assert {path: contents(path) for path in study.path.glob("*/")} == before


def test_one_failing_run_does_not_end_the_others(registry, tmp_path):
    (tmp_path / "bad.py").write_text(STRATEGY.replace("np.full(n, self.options.changes)", "[1] / 0"))
    registry = Registry((*registry.plugins, tmp_path / "bad.py"))
    study = made(registry, tmp_path, strategies=["bad", "climb"], repeats=1)
    study.claim()
    bad, good = run_all(study, study.prepare(), 1, tmp_path / "stop")
    assert not bad.complete and "strategy bad raised TypeError in ask (bad.py, line 19)" in bad.error
    assert good.complete and not good.error
    assert (bad.path / "error.txt").exists()


@pytest.mark.slow
@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 1, "bud', "\0" * 60])
def test_a_study_file_cut_by_a_power_loss_is_written_again(registry, tmp_path, content):
    study = made(registry, tmp_path)
    do(study)
    before = {path: contents(path) for path in study.path.glob("*/")}
    file = study.path / "study.json"
    whole = file.read_text()
    file.write_text(content)
    with pytest.raises(UserError, match="budget 30, not 31"):
        do(made(registry, tmp_path, budget=31))
    assert len(do(study)) == 4 and file.read_text() == whole
    assert {path: contents(path) for path in study.path.glob("*/")} == before


@pytest.mark.parametrize("name", ["run.json", "end.json"])
def test_a_run_cut_by_a_power_loss_does_not_block_the_others(registry, tmp_path, name):
    study = made(registry, tmp_path, repeats=1)
    do(study)
    first, second = sorted(study.path.glob("*/"))
    head, rows = (first / "run.json").read_bytes(), all_rows(study)
    (first / name).write_text("")
    larger = made(registry, tmp_path, repeats=1, strategies=["random"])
    assert [outcome.path for outcome in do(larger)] == [second]
    assert all(outcome.complete for outcome in do(study))
    assert (first / "run.json").read_bytes() == head and all_rows(study) == rows


def test_a_study_that_cannot_start_leaves_no_folder(registry, tmp_path):
    for problem in ("mine/none", "fusion:/nowhere/a.hlo"):
        with pytest.raises(UserError, match=r"mine/none|nowhere"):
            run_study(made(registry, tmp_path, problems=["mine/a", problem]), 1, Display())
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("np.zeros(6, int)", "np.zeros(5, int)"), "default configuration of mine/a is not a candidate"),
        (("np.zeros(6, int)", "[0] * 6"), None),
        (
            ("return Evaluations.of(1 +", "return Evaluations.of(np.inf +"),
            r"default .* fails \(runtime_error: no reason",
        ),
        (
            ("    def evaluate", "    def fingerprint(self):\n        return 1 / 0\n\n    def evaluate"),
            "in fingerprint",
        ),
        (("self.space, ", "self.room, "), "mine/a"),
        (("self.weights = ", "self.weights = 1 / 0 * "), "ZeroDivisionError in loading"),
    ],
)
def test_a_broken_problem_is_one_sentence_before_any_run(registry, tmp_path, change, message):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.py").write_text(PROBLEM.replace(*change), encoding="utf-8")
    study = made(Registry((tmp_path / "other" / "mine.py",)), tmp_path, strategies=["random"])
    if message is None:
        assert all(outcome.complete for outcome in do(study))
        return
    with pytest.raises(UserError, match=message):
        study.prepare()
    assert not list((tmp_path / "results").glob("*/*/rows.csv"))


def test_what_is_noted_with_a_run(registry, tmp_path):
    study = made(registry, tmp_path, repeats=1, strategies=["climb"])
    do(study)
    head = json.loads((study.path / "mine--a__climb__0" / "run.json").read_text())
    assert head["default"] == 1 and head["unit"] == "seconds" and head["optimum"] is None
    assert head["options"] == {"changes": 1, "sizes": [3, 4]} and head["level"] == "costs"
    assert head["versions"]["numpy"] and head["machine"]["cores"] == os.cpu_count()
    told = json.dumps(machine_facts())
    assert os.uname().nodename not in told.replace(os.uname().release, "")


@pytest.mark.slow
def test_a_study_in_a_thread_and_in_a_fresh_process_is_the_same(registry, tmp_path):
    """What a process did before, its hash seed and its thread leave no mark on the rows."""
    study = made(registry, tmp_path, repeats=1)
    worker = threading.Thread(target=do, args=(study,))
    worker.start()
    worker.join()
    call = (
        "import sys, bbo_suite; bbo_suite.run(['climb', 'random'], 'mine/a', budget=30, batch=7, jobs=1, study='t',"
        "results=sys.argv[1], plugins=sys.argv[2:])"
    )
    command = [sys.executable, "-c", call, str(study.results), *map(str, registry.plugins)]
    subprocess.run(command, check=True, env={**environment(), "PYTHONHASHSEED": "77"})
    other = dataclasses.replace(study, name="t")
    assert len(all_rows(study)) == 2 and all_rows(other) == all_rows(study)


def test_runs_of_timed_problems_are_made_one_at_a_time_unless_told_otherwise(suite, tmp_path, capsys):
    text = (Path(__file__).parents[1] / "plugins" / "noisy.py").read_text()
    (tmp_path / "clock.py").write_text(text.replace("Noisy", "Clock").replace("noisy = True", "noisy = timed = True"))
    given = {"plugins": [tmp_path / "clock.py"], "budget": 5, "repeats": 2, "results": tmp_path, "quiet": True}
    sentence = "one run at a time, because costs of clock/a are times"
    bbo_suite.run(["random"], ["clock/a"], study="s", **given)
    assert sentence in capsys.readouterr().err
    bbo_suite.run(["random"], ["clock/a"], study="t", jobs=1, **given)
    assert sentence not in capsys.readouterr().err
    plan = suite("plan", "--plugin", "clock.py", "--strategy", "random", "--budget", 5, "--repeats", 2).out
    assert "2 runs to do, 1 at a time" in plan and sentence in plan and default_jobs(8, ["clock/a"]) == 1


@pytest.mark.slow
def test_problems_are_loaded_once_before_the_first_run(tmp_path):
    file, log = tmp_path / "mine.py", tmp_path / "built"
    names = tuple(f"p{number}" for number in range(18))
    noting = f"with open({str(log)!r}, 'a') as log: log.write('x')"
    body = PROBLEM.replace('("a", "größe")', repr(names)).replace("self.space,", f"{noting}\n        self.space,")
    file.write_text(body, encoding="utf-8")

    class Shown(Display):
        @contextlib.contextmanager
        def running(self, plan):
            assert log.read_text() == "x" * len(names) and len(plan) == len(names)
            yield lambda path: None

    registry = Registry((file,))
    options = {"random": registry.strategy("random").Options()}
    run_study(
        StudyPlan("s", tmp_path, registry, tuple(f"mine/{name}" for name in names), options, budget=2), 2, Shown()
    )


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


@pytest.mark.slow
def test_runs_that_the_table_lacks_or_of_a_changed_problem_are_made(file, suite):
    assert suite("run", "--plan", file, "--quiet").code == 0
    table = pd.read_csv(file.parent / "runs.csv")
    dated = table.drop(index=[1, 3])
    dated.loc[[0, 5], ["fingerprint", "best"]] = ["0123456789abcdef", 7.0]
    dated.to_csv(file.parent / "runs.csv", index=False)
    made = suite("run", "--plan", file, "--quiet", "--missing", "--results", "other")
    assert made.code == 0 and "4 runs are new; 0 are equal" in made.out
    name = ["problem", "strategy", "budget", "seed"]
    found = pd.read_csv(file.parent / "runs.csv").sort_values(name, ignore_index=True)
    columns = [*name, "best", "default", "fingerprint", "digest"]
    assert found[columns].equals(table.sort_values(name, ignore_index=True)[columns])
    again = suite("run", "--plan", file, "--quiet", "--missing", "--results", "third")
    assert again.code == 0 and "0 runs are new; 0 are equal" in again.out


def test_only_a_plan_has_missing_runs(suite):
    found = suite("run", "--missing")
    assert found.code == 1 and "--missing is for runs of a plan" in found.err


@pytest.mark.slow
def test_runs_with_a_time_limit_are_not_compared(file, suite):
    file.write_text(FILE.replace("seeds=2", "max_seconds=60.0").replace("plain_seeds=True", "max_seconds=60.0"))
    assert suite("run", "--plan", file, "--quiet").code == 0
    table = pd.read_csv(file.parent / "runs.csv")
    table.assign(best=table["best"] / 2).to_csv(file.parent / "runs.csv", index=False)
    again = suite("run", "--plan", file, "--quiet")
    assert again.code == 0 and "0 runs are new; 0 are equal" in again.out


@pytest.mark.slow
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


@pytest.mark.slow
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
