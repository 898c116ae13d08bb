import itertools
import json
import signal
from pathlib import Path

import numpy as np
import pytest

import bbo_suite
from bbo_suite import UserError
from bbo_suite.registry import Registry
from bbo_suite.runs.study_plan import StudyPlan, chosen_options, default_name
from bbo_suite.verify.validate import Finding, validate

PLUGINS = [Path(__file__).with_name("plugins") / name for name in ("toy.py", "pick.py")]


@pytest.fixture
def run(tmp_path):
    """Return `bbo_suite.run` with the toys, one process and an empty folder."""

    def call(strategies="pick", problems="toy/small", **settings):
        settings = {"budget": 50, "jobs": 1, "results": tmp_path, "plugins": PLUGINS, **settings}
        return bbo_suite.run(strategies, problems, **settings)

    return call


def test_run_and_load(run, tmp_path):
    summaries = run(["pick", "random"], ["toy/small", "toy/large"], repeats=2, study="s", budget=30)
    keys = ("problem", "strategy", "seed")
    expected = itertools.product(["toy/small", "toy/large"], ["pick", "random"], [0, 1])
    assert [tuple(s[key] for key in keys) for s in summaries] == list(expected)
    frame = bbo_suite.load("s", tmp_path, texts=["digest"])
    assert len(frame) == 8 * 30
    for summary in summaries:
        rows = frame[(frame[list(keys)] == [summary[key] for key in keys]).all(axis=1)]
        assert rows["value"].min() == summary["best"]
        assert rows["speedup"].iloc[-1] == summary["speedup"] == summary["default"] / summary["best"]
        assert rows["digest"].nunique() == summary["unique"]


def test_again_and_another_folder_and_processes_give_the_same(run, tmp_path, monkeypatch):
    first = run(study="s", repeats=2)
    assert run(study="s", repeats=2) == first
    monkeypatch.chdir(PLUGINS[0].parent)
    other = run(study="s", repeats=2, jobs=2, results=tmp_path / "other", plugins=["toy.py", "pick.py"])
    assert [s["best"] for s in other] == [s["best"] for s in first]
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")  # the worker processes are still in the folder of before
    relative = run(study="s", repeats=2, jobs=2, results="here")
    assert [s["best"] for s in relative] == [s["best"] for s in first]
    assert (tmp_path / "deep/here/s").is_dir()


def test_problem():
    problem = bbo_suite.problem("toy/small", PLUGINS)
    assert problem.evaluate(np.full((2, 4), 3)).values.tolist() == [1.0, 1.0]
    with pytest.raises(UserError, match=r"Did you mean 'toy/small'\?"):
        bbo_suite.problem("toy/smal", PLUGINS)


def test_a_failed_run_is_an_error_and_the_others_are_stored(run, tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text(PLUGINS[1].read_text().replace("return self", "raise ValueError('no')\n        return self"))
    with pytest.raises(UserError, match="bad raised ValueError in ask"):
        run(["bad", "random"], plugins=[*PLUGINS, bad], study="s")
    assert set(bbo_suite.load("s", tmp_path)["strategy"]) == {"random"}


def test_interrupt_in_a_program_ends_the_program(run, tmp_path):
    nosy = tmp_path / "nosy.py"
    text = PLUGINS[1].read_text().replace("return self", "signal.raise_signal(signal.SIGINT)\n        return self")
    nosy.write_text("import signal\n" + text)
    before = signal.getsignal(signal.SIGINT)  # which may be "ignore" where the tests run in the background
    with pytest.raises(KeyboardInterrupt):
        run("nosy", plugins=[*PLUGINS, nosy], study="s", batch=10)
    assert len(bbo_suite.load("s", tmp_path)) == 10
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("option", ["portfolio.members=pick,random", "joint.schedule=all: pick"])
def test_a_plugin_is_a_member_and_a_step(run, tmp_path, option):
    key, _, value = option.partition("=")
    strategy = key.partition(".")[0]
    first, again = (run(strategy, study="s", option_texts={key: value}, batch=10, jobs=jobs) for jobs in (1, 2))
    assert first == again and first[0]["evaluations"] == 50
    (verdict,) = validate(Registry(tuple(PLUGINS)), "s", tmp_path, 50, lambda number, words: None)
    assert verdict.replayed is Finding.HOLDS


def test_options_of_one_and_of_all():
    registry = Registry((PLUGINS[1],))
    texts = {"size": "4", "evolution.crossover": "0.2", "pick.rate": "0.1"}
    chosen = chosen_options(registry, ["pick", "evolution"], texts)
    assert (chosen["pick"].size, chosen["pick"].rate, chosen["evolution"].crossover) == (4, 0.1, 0.2)
    with pytest.raises(UserError, match="Did you mean 'crossover'"):
        chosen_options(registry, ["evolution"], {"evolution.crosover": "0.2"})


def test_options_of_strategies_with_dots_in_their_names(tmp_path):
    for name in ("a", "a.b"):
        (tmp_path / f"{name}.py").write_text(PLUGINS[1].read_text())
    registry = Registry((tmp_path / "a.py", tmp_path / "a.b.py"))
    chosen = chosen_options(registry, ["a", "a.b"], {"a.b.size": "7", "a.rate": "0.1"})
    assert (chosen["a"].size, chosen["a.b"].size, chosen["a"].rate) == (3, 7, 0.1)


def test_default_names_differ_exactly_when_settings_do():
    registry = Registry((PLUGINS[1],))

    def name(strategies=("pick", "random"), problems=("a/b", "a/c"), budget=1, batch=2, seed=3, **texts):
        return default_name(strategies, problems, chosen_options(registry, strategies, texts), budget, batch, seed)

    assert name() == name() == name(("random", "pick"), ("a/c", "a/b")) == name(size="3")
    others = [
        name(strategies=("pick",)),
        name(problems=("a/b",)),
        name(problems=("a-b",)),
        name(problems=("a:b",)),
        name(budget=2),
        name(batch=3),
        name(seed=4),
        name(size="4"),
    ]
    assert len({name(), *others}) == len(others) + 1


@pytest.mark.parametrize("problem", ["größe:日本/ü.hlo", "f:/" + "x" * 500, "f:../../etc", "-/-", "f/.", "[a]/$b"])
def test_default_names_are_names_of_studies(tmp_path, problem):
    name = default_name(["pick"], [problem], {}, 1, 1, 0)
    StudyPlan(name, tmp_path, Registry(), (problem,), {})
    assert len(name) < 100
    assert json.loads(json.dumps(name)) == name
