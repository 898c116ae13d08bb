"""`fleet` on the command line."""

import importlib.util
import json
from pathlib import Path

import pytest

from bbo_suite.fleet import library

CONFTEST = Path(__file__).parents[1] / "fleet" / "conftest.py"


@pytest.fixture
def few(suite, monkeypatch, tmp_path):
    """Return a function that runs `fleet` on the toy library."""
    spec = importlib.util.spec_from_file_location("toy_fleet", CONFTEST)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(library, "load_library", lambda registry, library_id, shown: module.ToyKernels())
    settings = ("--option", "programs=20", "--option", "chips=0.01", "--option", "release=4", "--days", 6)
    return lambda *arguments: suite("fleet", *settings, "--study", "s", *arguments)


def logs():
    return {path: path.stat().st_mtime_ns for path in Path("results").rglob("results.log")}


@pytest.mark.slow
def test_it_compares_policies_and_resumes(few):
    given = ("--budget", "50", "--budget", "200", "--repeats", 2, "--policy", "weight", "--policy", "oracle")
    done = few(*given, "--json")
    assert done.code == 0, done.err
    runs = [json.loads(line) for line in done.out.splitlines()]
    order = [("oracle", 50, 0), ("weight", 50, 0), ("oracle", 200, 0)]
    assert [(run["policy"], run["budget"], run["seed"]) for run in runs[:3]] == order
    assert len(runs) == 8 and all(0 < run["saved"] < run["potential"] for run in runs)
    assert all((run["regret"] == 0) is (run["policy"] == "oracle") for run in runs)
    stored = logs()
    assert len(stored) == 8
    table = few(*given, "--quiet")
    assert "savings/cost" in table.out and "results/s/fleet.html" in table.out and not table.err
    assert few(*given, "--json").out == done.out and logs() == stored


@pytest.mark.slow
def test_progress_is_on_standard_error(few):
    done = few("--policy", "fifo")
    assert "finding the true best settings" in done.err and "finding" not in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--policy", "wait"), "Did you mean 'weight'?"),
        (("--budget", "0"), "a budget must be above 0"),
        (("--days", "0"), "days must be 1 or more"),
        (("--repeats", "0"), "repeats must be 1 or more"),
        (("--jobs", "0"), "jobs must be 1 or more"),
        (("--seed", "-1"), "seed must be 0 or more, not -1"),
        (("--study", "a/b"), "study name 'a/b' must be"),
        (("--option", "chips=-1"), "option chips of the fleet must be"),
        (("--option", "chip=1"), "Did you mean 'chips'?"),
    ],
)
def test_a_mistake_gets_one_sentence(few, arguments, message):
    done = few(*arguments)
    assert done.code == 1 and message in done.err and "Traceback" not in done.err


def test_the_folder_of_another_study_is_refused(few):
    run = Path("results/other/a--b__c__0")
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}")
    done = few("--study", "other")
    assert done.code == 1 and "results/other is no study of a fleet, but of searches; choose another" in done.err


def test_a_policy_of_a_file(few):
    Path("lightest.py").write_text(
        "import numpy as np\nfrom bbo_suite.fleet.jobs import Method\nfrom bbo_suite.fleet.policy import Policy\n\n\n"
        "class Lightest(Policy):\n    def plan(self, day):\n        waiting = day.usable(Method.EXHAUSTIVE)\n"
        "        order = np.argsort(day.seconds)\n        return day.first(order[waiting[order]], Method.EXHAUSTIVE)\n"
    )
    done = few("--budget", "50", "--plugin", "lightest.py", "--policy", "lightest", "--policy", "weight", "--json")
    assert done.code == 0, done.err
    light, heavy = (json.loads(line) for line in done.out.splitlines())
    assert light["policy"] == "lightest" and light["saved"] < heavy["saved"]
