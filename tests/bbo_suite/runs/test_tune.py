"""The commands `tune-strategy` and `pretrain`: what they find and write, and their errors."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from bbo_suite import UserError, option
from bbo_suite.runs.tune import _mean_gains, read_problems, score, search_space

FLAKY = """
from dataclasses import dataclass
from bbo_suite import Strategy, option
@dataclass(frozen=True)
class Options:
    good: bool = option(True, "does it work?")
class Flaky(Strategy):
    Options = Options
    def ask(self, n):
        assert self.options.good
        return self.task.space.sample(n, self.rng)
"""


@dataclass(frozen=True)
class Options:
    population: int = option(0, "0: automatic", low=0, high=100_000)
    tail: float = option(1.5, "exponent", low=1.01, high=10)
    share: float = option(0.5, "share", low=0, high=1)
    step: float = option(0.001, "step", low=1e-6, high=0.009)
    rate: float = option(0.01, "rate", low=1e-6, high=1.0)
    kick: int = option(3, "kick", low=1, high=100)
    deep: bool = option(False, "deep")
    mode: Literal["near", "far"] = option("near", "mode")
    schedule: str = option("", "free text")
    heat: float = option(2.0, "has no bounds")


def test_every_option_with_bounds_is_a_dimension_and_values_come_back():
    dimensions = {dimension.name: dimension for dimension in search_space(Options, "it")}
    assert set(dimensions) == {"population", "tail", "share", "step", "rate", "kick", "deep", "mode"}
    for name in dimensions:
        default = getattr(Options(), name)
        assert dimensions[name].decode(dimensions[name].encode(default)) == default
    assert [dimensions["population"].decode(dimensions["population"].encode(x)) for x in (0, 7, 100_000)] == [
        0,
        7,
        100_000,
    ]


def test_both_ends_of_a_range_can_be_proposed_and_wide_ranges_are_logarithmic():
    dimensions = {dimension.name: dimension for dimension in search_space(Options, "it")}
    for name, low, high in (("population", 0, 100_000), ("tail", 1.01, 10), ("share", 0, 1), ("step", 1e-6, 0.009)):
        found = dimensions[name].distribution()
        assert (dimensions[name].decode(found.low), dimensions[name].decode(found.high)) == (low, high)
    middle = (math.log(1e-3) + math.log(0.1)) / 2
    assert dimensions["rate"].decode(middle) == pytest.approx(1e-2)
    assert dimensions["share"].encode(0.3) == 0.3


def test_a_range_far_beyond_the_default_is_cut_to_a_tenth_and_ten_times_of_it():
    dimensions = {dimension.name: dimension for dimension in search_space(Options, "it")}
    for name, low, high in (("rate", 0.001, 0.1), ("kick", 1, 30)):
        found = dimensions[name].distribution()
        assert (dimensions[name].decode(found.low), dimensions[name].decode(found.high)) == (low, high)


def test_score_is_one_for_the_reference_and_independent_of_the_scale_of_a_problem():
    reference = {"a": 0.01, "b": 0.5}
    assert score(reference, reference) == 1
    assert score({"a": 0.02, "b": 0.5}, reference) == pytest.approx(1.5)
    assert score({"a": 0.01, "b": 1.0}, reference) == pytest.approx(1.5)


@pytest.mark.parametrize("nothing", [0.0, 1e-7, -0.1])
def test_defaults_without_gain_score_one_and_small_gains_score_little_more(nothing):
    reference = {"a": nothing, "b": 0.5}
    assert score(reference, reference) == 1
    assert score({"a": nothing + 0.0002, "b": 0.5}, reference) == pytest.approx(1.01)
    assert score({"a": nothing, "b": 0.6}, reference) == pytest.approx(1.1)


def tuned(suite, toy, *more):
    common = ("--problem", "toy/large", "--budget", 60, "--repeats", 1, "--batch", 20, "--jobs", 1)
    return suite("tune-strategy", "evolution", *toy, *common, *more)


@pytest.mark.slow
def test_tuning_finds_options_compares_them_on_fresh_seeds_and_resumes(suite, toy, tmp_path):
    done = tuned(suite, toy, "--trials", 4, "--out", "found/options.json")
    assert done.code == 0, done.err
    assert "toy/large" in done.out and "2 fresh seeds" in done.out
    assert "setting 4/4" in done.err
    found = json.loads(Path("found/options.json").read_text())
    assert found["strategy"] == "evolution" and set(found["options"]) == {"population", "crossover"}
    better = found["fresh_score"] > 1
    assert ("python -m bbo_suite run --strategy evolution --option evolution." in done.out) == better
    rows = {file: file.stat().st_mtime_ns for file in tmp_path.glob("results/*/*/*/rows.csv")}
    seeds = [json.loads(file.with_name("run.json").read_text())["seed"] for file in rows]
    assert sorted(set(seeds)) == [0, 1, 2] and seeds.count(0) == 4
    said = [line for line in done.out.splitlines() if not line.startswith("evaluating")]  # the toy says that
    assert [line for line in tuned(suite, toy, "--trials", 4).out.splitlines() if line in said] == said
    assert {file: file.stat().st_mtime_ns for file in tmp_path.glob("results/*/*/*/rows.csv")} == rows
    assert json.loads(tuned(suite, toy, "--trials", 4, "--json").out) == found
    assert tuned(suite, toy, "--trials", 5).code == 0
    again = {file: file.stat().st_mtime_ns for file in tmp_path.glob("results/*/*/*/rows.csv")}
    assert rows.items() <= again.items() and len(again) > len(rows)


@pytest.mark.slow
def test_a_setting_that_fails_is_left_out(suite, toy, tmp_path):
    (tmp_path / "flaky.py").write_text(FLAKY)
    given = ("--plugin", "flaky.py", *toy, "--problem", "toy/small", "--budget", 20, "--jobs", 1, "--trials", 5)
    done = suite("tune-strategy", "flaky", *given)
    assert done.code == 0, done.err
    assert "left out: strategy flaky raised AssertionError" in done.err
    assert "keep the shipped defaults" in done.out


def test_file_of_problems(tmp_path):
    file = tmp_path / "training.txt"
    file.write_text("# small ones\nfusion/a  # 700 parameters\n\n  #none\nehrlich/32x32-a#21\ntile/b#7 #8\n")
    assert read_problems(file) == ["fusion/a", "ehrlich/32x32-a#21", "tile/b#7"]
    assert read_problems(None) == []
    with pytest.raises(UserError, match=r"cannot read the problems in .*none"):
        read_problems(tmp_path / "none")


LEARNER = """
from bbo_suite import Strategy
class Learner(Strategy):
    def ask(self, n):
        return self.task.space.sample(n, self.rng)
    @classmethod
    def pretrain(cls, lessons, budget, rng, options, out, progress):
        rows = lessons[0].task.space.sample(budget, rng)
        values = lessons[0].evaluate(rows)
        progress(budget, "learned")
        out.write_text(f"{len(lessons)} {lessons[0].default} {values.min()}")
"""


def test_a_strategy_learns_on_problems_and_writes_a_file(suite, toy, tmp_path):
    (tmp_path / "learner.py").write_text(LEARNER)
    given = ("--problem", "toy/small", "--problem", "toy/large", "--out", "w.txt", "--budget", 50)
    done = suite("pretrain", *toy[:2], "--plugin", "learner.py", "--strategy", "learner", *given)
    assert done.code == 0 and done.out.endswith("w.txt\n")
    assert "50/50 evaluations, learned" in done.err
    count, default, best = Path("w.txt").read_text().split()
    assert (count, default) == ("2", "5.0") and float(best) < 5


def test_an_existing_policy_is_not_overwritten(suite, toy, tmp_path):
    (tmp_path / "learner.py").write_text(LEARNER)
    (tmp_path / "w.txt").write_text("precious")
    given = ("--strategy", "learner", "--problem", "toy/small", "--out", "w.txt", "--budget", 50)
    done = suite("pretrain", *toy[:2], "--plugin", "learner.py", *given)
    assert done.code == 1 and "w.txt exists already; choose another file with --out, or delete it" in done.err
    assert Path("w.txt").read_text() == "precious"


@pytest.mark.slow
def test_tasks_are_drawn_from_a_family(suite, toy, tmp_path):
    (tmp_path / "learner.py").write_text(LEARNER)
    given = ("--plugin", "learner.py", "--strategy", "learner", "--budget", 5, "--out", "w.txt", "--tasks", 3)
    done = suite("pretrain", *toy[:2], *given, "--family", "tile/uniform", "--problem", "toy/small")
    assert done.code == 0 and Path("w.txt").read_text().split()[0] == "4"


def test_a_cost_of_0_is_better_and_a_failed_run_worse_than_any_other():
    ratios = {"free": math.inf, "fast": 1e9, "slow": 0.5, "failed": None}
    gains = _mean_gains([{"problem": name, "speedup": ratio} for name, ratio in ratios.items()])
    assert sorted(gains, key=gains.__getitem__) == ["failed", "slow", "fast", "free"]
    assert math.isfinite(score(gains, gains))
