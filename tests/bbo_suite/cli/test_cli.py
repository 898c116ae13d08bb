"""What the commands print and store, also of a published study."""

import html
import json
import os
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pytest

from bbo_suite import Study
from bbo_suite.report import headlines

FIELDS = {
    *("problem", "strategy", "seed", "budget", "batch", "evaluations", "unique", "failed", "default", "best"),
    *("speedup", "optimum", "strategy_seconds", "evaluation_seconds", "level", "path"),
}


def strict(text):
    """Parse lines of JSON; NaN and Infinity are refused."""
    return [json.loads(line, parse_constant=pytest.fail) for line in text.splitlines()]


def process(folder, command, **environment):
    text = command.replace("BBO", f"{shlex.quote(sys.executable)} -m bbo_suite")
    return subprocess.run(
        ["bash", "-c", text], cwd=folder, env=os.environ | environment, capture_output=True, text=True, timeout=120
    )


def test_json_is_one_object_a_run_and_nothing_else(suite, toy):
    done = suite("run", *toy, "--budget", 150, "--repeats", 2, "--json")
    first, second = strict(done.out)
    assert done.code == 0
    assert set(first) >= FIELDS
    assert (first["problem"], first["strategy"], first["seed"], second["seed"]) == ("toy/small", "pick", 0, 1)
    assert (first["evaluations"], first["batch"], first["default"], first["optimum"]) == (150, 100, 5.0, 1.0)
    assert first["speedup"] == first["default"] / first["best"]
    assert (Path(first["path"]) / "rows.csv").exists()


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_what_a_problem_prints_does_not_reach_the_json(tmp_path, toy, jobs):
    plugins = shlex.join(map(str, toy))
    done = process(tmp_path, f"BBO run {plugins} --budget 20 --repeats 2 --json --quiet --jobs {jobs}")
    assert len(strict(done.stdout)) == 2
    assert "evaluating" in done.stderr


def test_numbers_that_json_does_not_have_are_null(suite, tmp_path):
    (tmp_path / "zero.py").write_text(ZERO)
    (run,) = strict(suite("run", "--plugin", "zero.py", "--strategy", "random", "--budget", 10, "--json").out)
    assert run["speedup"] is None
    assert run["optimum"] is None


ZERO = """
import numpy as np
from bbo_suite import Evaluations, Problem, choice, product
class Zero(Problem):
    instances = ("a",)
    optimum = float("-inf")
    def __init__(self, instance):
        self.space, self.default = product(choice("x", [1, 2])), np.array([0])
    def evaluate(self, configs):
        return Evaluations.of(1.0 - configs[:, 0])
"""


def test_a_default_that_costs_nothing_is_refused(suite, tmp_path):
    (tmp_path / "nothing.py").write_text(ZERO.replace("1.0 -", "0.0 *"))
    done = suite("run", "--plugin", tmp_path / "nothing.py", "--strategy", "random", "--budget", 10)
    assert done.code == 1 and "the default configuration of nothing/a costs 0" in done.err


def test_run_ends_with_figures_the_headlines_and_the_next_commands(suite, toy):
    strategies = (part for name in ("random", "pick", "local") for part in ("--strategy", name))
    done = suite("run", *toy, "--budget", 50, *strategies, "--study", "s")
    lines = done.out.splitlines()
    assert "speedup" in done.out
    assert [Path(line).name for line in lines[-11:-7]] == [
        "convergence.svg", "convergence.png", "speedup.svg", "speedup.png"]  # fmt: skip
    assert all(Path(line).stat().st_size for line in lines[-11:-7])
    assert lines[-6:-4] == headlines("s", Path("results"))
    assert "black-box" in lines[-6] and "structure" in lines[-5]
    assert lines[-3].startswith("next: python -m bbo_suite report s  ")
    assert lines[-2].strip().startswith(f"python -m bbo_suite best s {shlex.join(map(str, toy))}  ")
    assert lines[-1].strip().startswith("python -m bbo_suite forecast s  ")
    for command in (lines[-3].removeprefix("next: "), *lines[-2:]):
        assert suite(*shlex.split(command.partition("  (")[0])[3:]).code == 0
    report = Path("results/s/report.html").read_text()
    assert html.escape(lines[-6]) in report and html.escape(lines[-5]) in report


def test_plugins_are_run_when_nothing_is_chosen(suite, toy, tmp_path):
    (problem,) = strict(suite("run", *toy[:2], "--strategy", "random", "--budget", 10, "--json").out)
    assert (problem["problem"], problem["strategy"]) == ("toy/small", "random")
    both = tmp_path / "both.py"
    both.write_text(toy[1].read_text() + toy[3].read_text())
    (run,) = strict(suite("run", "--plugin", both, "--budget", 10, "--json").out)
    assert (run["problem"], run["strategy"]) == ("both/small", "both")


def test_list_and_show(suite, toy):
    items = json.loads(suite("list", *toy, "--json").out)
    assert {"random", "pick", "toy/small", "toy/large"} <= {item["id"] for item in items}
    assert all(item["kind"] == "problem" for item in json.loads(suite("list", "problems", "--json").out))
    assert {"random", "annealing"} <= {item["id"] for item in json.loads(suite("list", "strategies", "--json").out)}
    text = suite("list", *toy).out
    assert "Uniform candidates." in text and "toy/large" not in text
    assert re.search(r"toy +│ +2 +│ +Counts the parameters", text)
    assert len(text.splitlines()) < 60
    assert suite("list", "toy/LAR", *toy).out.splitlines()[1:] == ["toy/large"]
    assert [item["id"] for item in json.loads(suite("list", "toy", *toy, "--json").out)] == ["toy/small", "toy/large"]
    assert "did you mean 'fusion'?" in suite("list", "fusoin").err
    facts = json.loads(suite("show", "toy/large", *toy, "--json").out)
    assert (facts["candidates"], facts["default"], facts["optimum"], facts["unit"]) == (4**30, 31.0, 1.0, "seconds")
    text = suite("show", "toy/large", *toy).out
    assert all(word in text for word in ("Counts the parameters", "about 10^18", "31", "30 choice"))
    text = suite("show", "pick", *toy).out
    assert all(word in text for word in ("Uniform candidates.", "size", "how many", "near or far", "0.5"))


def test_list_of_studies(suite, toy):
    assert "there are no studies in results yet" in suite("list", "studies").out
    assert json.loads(suite("list", "studies", "--json").out) == []
    suite("run", *toy, "--budget", 10, "--study", "b", "--repeats", 3, "--json")
    suite("run", *toy, "--budget", 2000, "--study", "a", "--only", "1/2", "--repeats", 2)
    Path("results/a/study.json").write_text("{")  # it is only displayed
    first, second = json.loads(suite("list", "studies", "--json").out)
    changed = second.pop("changed")
    assert second == {
        **{"study": "b", "problems": ["toy/small"], "strategies": ["pick"], "runs": 3, "done": 3, "budget": 10}
    }
    assert abs((datetime.now(UTC) - datetime.fromisoformat(changed)).total_seconds()) < 60
    assert (first["study"], first["runs"], first["done"], first["budget"]) == ("a", 2, 1, None)
    text = suite("list", "studies").out
    assert re.search(r"a +│ toy/small +│ pick +│ +1 of 2 ", text)
    assert re.search(r"b +│ toy/small +│ pick +│ +3 of 3 +│ +10 ", text)


def test_show_of_a_space_too_large_to_print(suite, tmp_path):
    (tmp_path / "huge.py").write_text(ZERO.replace('product(choice("x", [1, 2])), np.array([0])', "H, np.zeros(99999)"))
    text = (
        (tmp_path / "huge.py")
        .read_text()
        .replace("class Zero", "from bbo_suite import Space\nH = Space([2] * 99999)\nclass Zero")
    )
    (tmp_path / "huge.py").write_text(text.replace("np.zeros(99999)", "np.zeros(99999, int)"))
    assert "about 10^30102" in suite("show", "huge/a", "--plugin", "huge.py").out
    facts = json.loads(suite("show", "huge/a", "--plugin", "huge.py", "--json").out)
    assert (facts["candidates"], facts["log10_candidates"]) == (None, 30102.699)


@pytest.mark.slow
def test_list_and_help_import_nothing_heavy():
    code = "import sys; sys.argv = ['x', '{}']; from bbo_suite.__main__ import main\n" \
           "try: main()\nexcept SystemExit: print('LOADED', *sys.modules)"  # fmt: skip
    for command in ("--help", "list"):
        done = subprocess.run([sys.executable, "-c", code.format(command)], capture_output=True, text=True)
        loaded = set(done.stdout.rpartition("LOADED")[2].split())
        assert "bbo_suite.cli" in loaded
        assert not loaded & {"pandas", "scipy", "matplotlib", "sklearn", "jax", "numba", "joblib", "equinox", "optuna"}


@pytest.mark.slow
def test_plot_draws_what_is_asked_for_and_says_what_it_leaves_out(suite, toy):
    assert suite("run", *toy, "--budget", 40, "--study", "s", "--json").code == 0
    done = suite("plot", "s")
    assert [Path(line).name for line in done.out.splitlines()[:2]] == ["convergence.svg", "convergence.png"]
    assert done.err.startswith("not drawn: profile (needs 2 strategies or more, not 1); critical (")
    assert done.err.count("\n") == 1
    done = suite("plot", "s", "--figure", "time", "--figure", "overhead", "--format", "pdf")
    assert ([Path(line).name for line in done.out.splitlines()], done.err) == (["time.pdf", "overhead.pdf"], "")
    done = suite("plot", "s", "--figure", "time", "--figure", "profile", "--format", "pdf")
    assert (done.code, done.out) == (1, "results/s/figures/time.pdf\n") and done.err.startswith("not drawn: profile (")
    done = suite("plot", "s", "--figure", "time", "--style", "paper")
    assert done.out.splitlines() == ["results/s/figures/paper/time.txt", "results/s/figures/paper/time.pdf"]
    refused = suite("plot", "s", "--problem", "toy/smal")
    assert refused.code == 1 and "no problem 'toy/smal' in study 's'. Did you mean 'toy/small'?" in refused.err
    refused = suite("plot", "s", "--figure", "covergence")
    assert refused.code == 1 and "Did you mean 'convergence'?" in refused.err


@pytest.mark.slow
def test_a_closed_pipe_is_quiet(tmp_path, toy):
    plugins = shlex.join(map(str, toy))
    done = process(tmp_path, f"BBO run {plugins} --budget 10 --repeats 9 --jobs 1 --json --quiet | head -1")
    assert len(strict(done.stdout)) == 1
    assert "Broken" not in done.stderr and "Traceback" not in done.stderr
    assert process(tmp_path, "BBO list | true").stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize("environment", [{"LC_ALL": "C"}, {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}])
def test_poor_terminals(tmp_path, toy, environment):
    (tmp_path / "größe.py").write_text(toy[3].read_text(), encoding="utf-8")
    # a share draws no figures
    run = f"BBO run {shlex.join(map(str, toy[:2]))} --plugin gr*.py --budget 10 --jobs 1 --only 1/1"
    command = f"{run}; BBO list --plugin gr*.py"
    done = process(tmp_path, command, **{"LC_ALL": "C", "COLUMNS": "40", **environment})
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "2.5000" in done.stdout or "speedup" in done.stdout


def test_watch_and_validate_print_json(suite, toy):
    suite("run", *toy, "--budget", 30, "--repeats", 2, "--study", "s", "--json")
    Path("results/s/toy--small__pick__1/rows.csv").unlink()
    (shown,) = strict(suite("watch", "s", "--json").out)
    assert (shown["study"], shown["done"], shown["waiting"], shown["over"]) == ("s", 1, 1, False)
    first = {"problem": "toy/small", "strategy": "pick", "seed": 0, "state": "done", "evaluations": 30, "budget": 30}
    assert {**first, "speedup": shown["runs"][0]["speedup"]} == shown["runs"][0]
    done = suite("validate", "s", *toy, "--json")
    first, second = strict(done.out)
    assert (first["folder"], first["seed"], first["rows"]) == ("toy--small__pick__0", 0, 30)
    assert (first["log"], first["proposals"], first["values"], first["complaints"]) == (*["holds"] * 3, [])
    assert (done.code, second["log"], len(second["complaints"])) == (1, "does NOT hold", 1)


@pytest.mark.slow
def test_check_and_comparison_print_json(suite, toy):
    rules = strict(suite("check", toy[3], "--json").out)
    assert {rule["subject"] for rule in rules} == {"strategy pick"} and not any(rule["complaint"] for rule in rules)
    suite("run", *toy, "--budget", 30, "--study", "s", "--json")
    published = suite("export", "s", "--to", "digests").out.strip()
    (same,) = strict(suite("validate", "s", "--digests", published, "--json").out)
    assert same["holds"] and same["same"] == [{"problem": "toy/small", "strategy": "pick", "seed": 0}]


def test_plan_says_how_long_the_rest_takes(suite, toy):
    command = (*toy, "--strategy", "pick", "--strategy", "random", "--budget", 1000, "--study", "s")
    items = strict(suite("plan", *command, "--repeats", 4, "--json").out)
    assert [item["done"] for item in items] == [0, 0]
    assert all(0 < item["seconds"] < 60 for item in items)
    assert not Path("results").exists()  # trials are not stored
    suite("run", *command, "--json")
    rest = strict(suite("plan", *command, "--repeats", 4, "--json").out)
    stored = [summary["evaluation_seconds"] + summary["strategy_seconds"] for summary in Study("s")]
    assert [item["seconds"] for item in rest] == [pytest.approx(3 * seconds, rel=0.01) for seconds in stored]
    assert "6 runs to do, 2 at a time: about 1 s" in suite("plan", *command, "--repeats", 4, "--jobs", 2).out
    (limited, _) = strict(suite("plan", *command, "--repeats", 4, "--max-seconds", "1e-9", "--json").out)
    assert limited["seconds"] == pytest.approx(3e-9)


def test_version(suite):
    assert suite("--version").out == f"bbo_suite {version('bbo_suite')}\n"


@pytest.mark.slow
def test_a_shell_completes_commands_and_options():
    code = "import sys; sys.argv = ['bbo-suite']; from bbo_suite.__main__ import main; main()"
    for typed, expected in (("bbo-suite val", "validate"), ("bbo-suite run --strat", "--strategy")):
        words = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" ")), "_BBO_SUITE_COMPLETE": "complete_bash"}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | words)
        assert done.stdout.split() == [expected], done.stderr


@pytest.mark.slow
def test_demonstration_ends_with_a_table_and_a_figure(tmp_path):
    done = process(tmp_path, "BBO run")
    assert done.returncode == 0
    assert "fusion/resnet50" in done.stdout
    pictures = [line for line in done.stdout.splitlines() if line.endswith(".png")]
    assert pictures and all((tmp_path / picture).is_file() for picture in pictures)
    assert "next: python -m bbo_suite report" in done.stdout


TABLE = "problem,strategy,seed,level,default,best,evaluations,budget\n" + "".join(
    f"p/{p},{s},{seed},costs,8,{4 + p + seed},{budget},{budget}\n"
    for p in range(3) for s in "xy" for seed in range(2) for budget in (100, 1000)
)  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    (folder / "s").mkdir()
    (folder / "s" / "runs.csv").write_text(TABLE)
    return folder


@pytest.mark.slow
def test_a_budget_has_its_report_and_figures(results, suite):
    done = suite("report", "s-100", "--results", results)
    assert (done.code, done.out.strip()) == (0, str(results / "s" / "report-100.html"))
    done = suite("plot", "s-100", "--results", results, "--figure", "heat", "--format", "svg")
    assert (done.code, done.out.strip()) == (0, str(results / "s" / "figures-100" / "heat.svg"))


def test_several_budgets_are_not_one_study(results, suite):
    for command in ("report", "plot"):
        done = suite(command, "s", "--results", results)
        assert done.code and "s-100, s-1000" in done.err
