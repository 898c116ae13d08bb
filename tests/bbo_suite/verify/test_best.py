"""What `best` prints: the winner, what it is worth now, words to paste, and the few that serve several programs.

Of a candidate, changes that gain nothing return to the default, and the others are ranked.
"""

import itertools
import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import bbo_suite
from bbo_suite import Evaluations, Problem, Status, Structure, UserError, choice, figures, product
from bbo_suite.core.quantities import effect
from bbo_suite.registry import Registry
from bbo_suite.report import read_study
from bbo_suite.report.findings import findings
from bbo_suite.store.remeasured import finalists
from bbo_suite.store.rows import read_rows
from bbo_suite.verify import best
from bbo_suite.verify.best import Best, best_rows, selections, shared_ratio
from bbo_suite.verify.minimal import LEAST, ROUNDS, Minimal, gain_text, minimal
from bbo_suite.verify.remeasure import REPEATS

FAILING = """
import numpy as np
from bbo_suite import Evaluations, Problem, choice, product
class Failing(Problem):
    instances = ("a",)
    def __init__(self, instance):
        self.space, self.default = product(choice("x", range(50))), np.array([0])
    def evaluate(self, configs):
        return Evaluations.of(np.where(configs[:, 0] == 0, 1.0, np.inf))
"""
OTHERS = """
from bbo_suite import Strategy
class Others(Strategy):
    def ask(self, n):
        return self.rng.integers(1, 50, (n, 1))
"""


NOISY = Path(__file__).parents[1] / "plugins" / "noisy.py"


def printed(done):
    return [json.loads(line, parse_constant=pytest.fail) for line in done.out.splitlines()]


def test_the_best_of_all_runs_can_be_pasted_and_is_measured_again(suite, study, tmp_path):
    (found,) = printed(suite("best", *study, "--json"))
    rows = {path.parent.name: read_rows(path.parent) for path in tmp_path.glob("results/s/*/rows.csv")}
    assert found["value"] == min(row.value for own in rows.values() for row in own)
    row = rows[f"toy--small__{found['strategy']}__0"][found["evaluation"] - 1]
    assert (row.value, row.config) == (found["value"], found["config"])
    assert found["speedup"] == found["stored_speedup"] == 5.0 / found["value"]
    assert found["measured_again"] == {"defaults": [5.0, 5.0], "values": [found["value"]] * 2, "failure": ""}
    differing = {f"p{i} = {digit}" for i, digit in enumerate(found["config"]) if digit != "0"}
    assert set(found["paste"].splitlines()) == differing


def test_the_text_is_for_people_and_holds_what_is_pasted_on_lines_of_its_own(suite, study):
    out = suite("best", *study).out
    (found,) = printed(suite("best", *study, "--json"))
    head = out.split("\n\n")[0].splitlines()
    assert head[0] == f"toy/small: 5 -> {found['value']:.6g} seconds, speedup {found['speedup']:.4f}"
    assert head[1].startswith(f"  found by {found['strategy']}, seed 0, at evaluation")
    assert head[2] == "  measured again: the same" and len(head) <= 10
    whole = suite("best", *study, "--all").out
    assert whole.split("\n\n")[1] == found["paste"]
    assert (found["paste"] in out) == (len(found["paste"].splitlines()) <= 4)
    assert "evaluating" not in out  # the toy prints that while it is measured


@pytest.mark.slow
def test_a_space_that_was_covered_has_its_optimum(suite, toy):
    run = ("run", *toy, "--strategy", "exhaustive", "--study")
    assert "256 covered" in suite(*run, "all", "--budget", 5000).out
    out = suite("best", "all", *toy).out
    assert (
        "toy/small: 5 -> 1 " in out and "of 256" in out and "all 256 candidates were tried: this is the optimum" in out
    )
    (found,) = printed(suite("best", "all", *toy, "--json"))
    assert (found["all_tried"], found["is_optimum"]) == (256, True)
    suite(*run, "most", "--budget", 255)
    assert "were tried" not in suite("best", "most", *toy).out


def test_a_study_without_a_success_says_so(suite, tmp_path):
    (tmp_path / "failing.py").write_text(FAILING)
    (tmp_path / "others.py").write_text(OTHERS)
    plugins = ("--plugin", "failing.py", "--plugin", "others.py")
    suite("run", *plugins, "--budget", 20, "--study", "s", "--json")
    done = suite("best", "s", *plugins)
    assert done.code == 1
    assert done.out == "failing/a: no candidate succeeded in 20 evaluations (1 run)\n\n"
    (found,) = printed(suite("best", "s", *plugins, "--json"))
    assert found["speedup"] is None and found["paste"] is None


def test_of_noisy_problems_the_median_of_several_measurements_counts(suite, tmp_path):
    suite("run", "--plugin", NOISY, "--strategy", "random", "--budget", 60, "--study", "s", "--json")
    (found,) = printed(suite("best", "s", "--plugin", NOISY, "--json"))
    again = found["measured_again"]
    assert len(again["values"]) == len(again["defaults"]) == REPEATS
    out = suite("best", "s", "--plugin", NOISY).out
    assert "median of 7, which differ by" in out


def test_run_report_best_and_the_picture_say_the_same_number(suite, tmp_path, monkeypatch):
    (told,) = printed(suite("run", "--plugin", NOISY, "--strategy", "random", "--budget", 30, "--study", "s", "--json"))
    (found,) = printed(suite("best", "s", "--plugin", NOISY, "--minimal", "--json"))
    chosen = max(finalists(Path(told["path"])), key=lambda each: each.speedup, default=None)
    expected = chosen.speedup if chosen else told["speedup"]
    assert found["speedup"] == pytest.approx(expected)
    monkeypatch.setattr(figures, "FIGURES", {})
    (finding,) = findings(read_study("s", tmp_path / "results"), Registry((NOISY,))).shown
    words = f"speedup {expected:.4f}"
    assert words in finding.cost and words in suite("best", "s", "--plugin", NOISY).out.splitlines()[0]
    assert f"{words}, by random" in finding.drawing.svg


def test_one_problem_is_chosen_and_what_it_knows_is_printed(suite, toy):
    suite("run", *toy, "--strategy", "random", "--budget", 20, "--study", "s", "--json")
    (found,) = printed(suite("best", "s", *toy, "--problem", "toy/small", "--json"))
    assert found["problem"] == "toy/small" and found["baselines"]
    out = suite("best", "s", *toy).out
    for name, speedup in found["baselines"].items():
        assert f"{name}: {effect(speedup, found['unit'])}" in out
    done = suite("best", "s", *toy, "--problem", "toy/none")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: there is no problem 'toy/none' in study 's'")


LUCKY = """
import numpy as np
from bbo_suite import Evaluations, Problem, choice, product
class Lucky(Problem):
    instances, noisy, evaluated = ("a",), True, 0
    def __init__(self, instance):
        self.space, self.default = product(choice("x", range(50))), np.array([0])
    def evaluate(self, configs):
        Lucky.evaluated += len(configs)
        return Evaluations.of((60.0 - configs[:, 0]) * (0.1 if Lucky.evaluated == 3 else 1))
"""


def test_a_lucky_measurement_does_not_make_a_run_the_best(suite, tmp_path):
    (tmp_path / "lucky.py").write_text(LUCKY)
    run = ("run", "--plugin", "lucky.py", "--strategy", "random", "--budget", 4, "--batch", 1, "--repeats", 3)
    runs = printed(suite(*run, "--study", "s", "--json"))
    lucky, truly = min(runs, key=lambda run: run["best"]), max(runs, key=lambda run: run["speedup"])
    assert lucky["seed"] != truly["seed"]
    (found,) = printed(suite("best", "s", "--plugin", "lucky.py", "--json"))
    again = [each.speedup for run in runs for each in finalists(Path(run["path"]))]
    assert found["speedup"] == max(again) >= truly["speedup"] and found["value"] > lucky["best"]


def test_a_problem_that_is_not_there_or_has_changed_is_not_measured(suite, study, tmp_path):
    done = suite("best", "s")
    assert done.code == 0
    assert "measured again: no (there is no problem 'toy/small'" in done.out
    assert "configuration 3" in done.out or "configuration " in done.out
    (tmp_path / "toy.py").write_text(NOISY.read_text().replace("Noisy", "Toy").replace('("a",)', '("small",)'))
    changed = suite("best", "s", "--plugin", "toy.py").out
    assert "the problem has changed since" in changed and "go back to it, or run another study" in changed


def test_runs_that_were_cut_count_and_damaged_ones_are_named(suite, study, tmp_path):
    folder = tmp_path / "results" / "s"
    whole = (folder / "toy--small__pick__0" / "rows.csv").read_text()
    (folder / "toy--small__pick__0" / "rows.csv").write_text(whole[: len(whole) // 2])
    assert suite("best", *study).code == 0
    (folder / "toy--small__pick__0" / "rows.csv").write_text(whole.replace(",ok,", ",no,", 1))
    done = suite("best", *study)
    assert done.code == 1 and "annealing" in done.out
    assert done.err.count("left out: ") == 1 and "toy--small__pick__0/rows.csv, line 2 is damaged" in done.err
    (folder / "toy--small__pick__0" / "rows.csv").unlink()
    assert suite("best", *study).code == 0
    (folder / "toy--small__pick__0" / "run.json").write_text("{}")
    assert "left out: 'problem' is missing in " in suite("best", *study).err


BEATEN = """
import numpy as np
from bbo_suite import Evaluations, Problem, choice, product
class Beaten(Problem):
    instances = ("a", "b")
    unit = "bytes"
    def __init__(self, instance):
        self.space, self.default = product(choice("x", range(50))), np.array([0])
        self.at_o3 = {"a": 40.0, "b": 60.0}[instance]
    def evaluate(self, configs):
        return Evaluations.of(100.0 - configs[:, 0])
    def baselines(self):
        return {"-O3": self.at_o3, "-O0": 400.0, "broken": np.inf}
    def paste(self, config):
        return f"-fx={config[0]}"
"""


@pytest.mark.slow
def test_what_a_baseline_beats_is_not_recommended(suite, tmp_path):
    (tmp_path / "beaten.py").write_text(BEATEN)
    run = ("run", "--plugin", "beaten.py", "--strategy", "exhaustive", "--budget", 50, "--study", "s")
    suite(*run, "--problem", "beaten/a", "--problem", "beaten/b")
    seen = ("best", "s", "--plugin", "beaten.py")
    beaten, best = suite(*seen).out.split("beaten/b: ")
    assert "-O3 is better: 40 bytes, 60.0 % fewer bytes" in " ".join(beaten.split()) and "-fx=49" not in beaten
    assert "is better" not in best and "\n-fx=49\n" in best
    assert "-fx=49" in suite(*seen, "--problem", "beaten/a", "--all").out
    first, second = printed(suite(*seen, "--json"))
    assert (first["paste"], second["paste"], second["better"]) == (None, "-fx=49", None)
    assert first["better"].startswith("-O3 is better")


@pytest.mark.parametrize(("level", "words"), [(0.998, ""), (0.9, "-O2 is better")])
def test_where_only_the_default_is_left_a_baseline_must_beat_the_noise(level, words):
    head = {"default": 1.0, "unit": "times the default", "baselines": {"-O2": level}}
    run, row, left = SimpleNamespace(head=head), SimpleNamespace(value=1.0), Minimal(np.zeros(1, int), 3, (), 9, 0.01)
    best = Best("command:a.toml", 1, 60, run=run, row=row, cost=1.0, minimal=left)
    assert best.better.startswith(words) and bool(best.better) == bool(words)


TWO = "several:ordering/train-40-a+ordering/train-40-b"


def least(ratios, k):
    return min(shared_ratio(ratios[list(rows)]) for rows in itertools.combinations(range(len(ratios)), k))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_best_set_is_found_by_trying_all_and_nearly_always_by_exchange(k, monkeypatch):
    rng, gaps = np.random.default_rng(k), []
    for _ in range(20):
        ratios = rng.lognormal(size=(12, 6))
        ratios[0, 3] = np.inf
        assert shared_ratio(ratios[best_rows(ratios, k)]) == pytest.approx(least(ratios, k))
        monkeypatch.setattr(best, "EXHAUSTIVE", 0)
        gaps.append(shared_ratio(ratios[best_rows(ratios, k)]) / least(ratios, k))
        monkeypatch.undo()
    assert max(gaps) < 1.2 and np.median(gaps) == pytest.approx(1.0)
    assert best_rows(np.ones((2, 3)), 5) == [0, 1]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    results = tmp_path_factory.mktemp("results")
    settings = {"budget": 60, "batch": 20, "jobs": 1, "results": results, "study": "shared", "keep_all": True}
    bbo_suite.run("random", [TWO, "ordering/small-a"], quiet=True, **settings)
    return results


@pytest.mark.slow
def test_selected_candidates_are_measured_again_and_serve_better_than_one(shared):
    (found,) = selections(Registry(), "shared", shared, 2, [TWO])
    (one,) = selections(Registry(), "shared", shared, 1, [TWO])
    best = bbo_suite.load("shared", shared).query("problem == @TWO")["value"].min()
    assert found.candidates == 60 and found.programs == ("ordering/train-40-a", "ordering/train-40-b")
    assert 1 / one.speedup == pytest.approx(best) and found.alone == pytest.approx(best)
    assert found.speedup >= one.speedup and found.facts()["speedup"] == found.speedup
    with pytest.raises(UserError, match="--keep needs several"):
        list(selections(Registry(), "shared", shared, 2, ["ordering/small-a"]))


def test_best_prints_the_selection_and_refuses_it_beside_minimal(shared, suite):
    command = ("best", "shared", "--keep", 2, "--problem", TWO, "--results", shared)
    done = suite(*command, "--json")
    printed = json.loads(done.out)
    assert len(printed["kept"]) == 2 and set(printed["uses"].values()) <= {0, 1} and done.code == 0
    refused = suite(*command, "--minimal")
    assert refused.code == 1 and "--keep and --minimal" in refused.err


GAINS = {3: 4.0, 11: 2.0, 250: 1.0}
PAIR = (17, 230)


class Sparse(Problem):
    """Three parameters gain alone, two only together, one must be set with another, and all others do nothing."""

    instances = ("a",)
    spread = 0.0

    def __init__(self, instance="a", d=300):
        self.space = product(*(choice(f"x{i}", (False, True)) for i in range(d)))
        self.default, self.id = np.zeros(d, int), "sparse/a"
        self._rng = np.random.default_rng(0)

    def evaluate(self, configs):
        gained = sum(gain * configs[:, column] for column, gain in GAINS.items())
        values = 100.0 - gained - 8 * configs[:, list(PAIR)].all(axis=1) + 5 * configs[:, 42]
        values *= 1 + self.spread * self._rng.standard_normal(len(values))
        broken = (configs[:, 3] == 1) & (configs[:, 4] == 0)
        status = np.where(broken, Status.COMPILE_ERROR, Status.OK).astype(np.int8)
        return Evaluations(np.where(broken, np.inf, values), status)


def gains_of(least):
    return {each.column: each.gain for each in least.needed}


def test_only_needed_changes_are_left_with_their_gains():
    problem = Sparse()
    least = minimal(problem, np.ones(300, np.int8), noisy=False)
    cost = 100 - 7 - 8
    expected = {4: math.inf, 3: 4 / cost, 11: 2 / cost, 250: 1 / cost, 17: 8 / cost, 230: 8 / cost}
    assert gains_of(least) == pytest.approx(expected)
    gains = [each.gain for each in least.needed]
    assert gains == sorted(gains, reverse=True)
    assert set(np.flatnonzero(least.config).tolist()) == set(expected)
    assert problem.evaluate(least.config[None]).values[0] == cost  # the change that made it slower is gone as well
    assert (least.changes, least.noise) == (300, LEAST)
    assert least.evaluations < 120


def test_interacting_changes_return_together():
    problem = Sparse()
    problem.evaluate = lambda configs: Evaluations.of(100.0 + (configs[:, 5] != configs[:, 295]))
    config = np.zeros(300, np.int8)
    config[[5, 295]] = 1
    neighbours = np.array([295, 5])
    starts = np.cumsum([0] + [int(i in (5, 295)) for i in range(300)])
    problem.structure = lambda: Structure(starts, neighbours, np.zeros((300, 1), np.float32), ("one",))
    config[100:120] = 1
    problem.evaluate = lambda configs: Evaluations.of(
        100.0 + (configs[:, 5] != configs[:, 295]) - configs[:, 100:120].sum(axis=1)
    )
    least = minimal(problem, config, noisy=False)
    assert sorted(gains_of(least)) == list(range(100, 120))


def test_a_change_whose_gain_would_read_0_is_not_needed():
    problem = Sparse()
    problem.evaluate = lambda configs: Evaluations.of(
        100.0 - 1e-4 * configs[:, :40].sum(axis=1) - configs[:, 50] * 6e-4
    )
    config = np.zeros(300, np.int8)
    config[:60] = 1
    least = minimal(problem, config, noisy=False)
    assert all(gain_text(gain) != "0.000 %" for gain in gains_of(least).values())
    cost, before = (problem.evaluate(each[None]).values[0] for each in (least.config, config))
    assert 50 in gains_of(least) and cost <= before * (1 + LEAST)


def test_noise_is_no_reason_to_keep_a_change():
    problem = Sparse()
    problem.spread = 0.002
    least = minimal(problem, np.ones(300, np.int8), noisy=True)
    assert 0 < least.noise < 0.02
    assert {3, 4, 17, 230} <= set(gains_of(least))  # 4 and 8 % are far above the noise
    assert len(least.needed) <= 15
    assert least.evaluations % 2 == 0


class InTurns(Sparse):
    """Each ratio has an error of some percent, and now and then a large one."""

    noisy = True

    def ratios(self, config, reference, first, count):
        costs = self.evaluate(np.array([config, reference])).values
        return (np.log(costs[0] / costs[1]) + 0.02 * self._rng.standard_t(3, count)).tolist()


def test_no_change_that_gains_nothing_is_named_where_ratios_vary_by_percents():
    named = [column for seed in range(25) for column in gains_of(least_in_turns(seed))]
    assert set(named) <= {3, 4, 11, 17, 230} and named.count(17) == named.count(230) == 25


def least_in_turns(seed):
    problem, config = InTurns(d=300), np.zeros(300, np.int8)
    problem._rng, config[[3, 4, 11, *PAIR, 100, 101, 102, 103]] = np.random.default_rng(seed), 1
    return minimal(problem, config, noisy=True)


def test_a_clear_rise_is_measured_twice_and_a_failure_once():
    problem = Sparse()
    problem.spread = 1e-9
    config = np.zeros(300, np.int8)
    config[[3, 4]] = 1
    least = minimal(problem, config, noisy=True)  # both together, each alone in the groups, and each in the end
    assert gains_of(least) == {4: math.inf, 3: pytest.approx(4 / 96)}
    clear, failing = 2 * 2, 2
    assert least.evaluations == 2 * ROUNDS + clear + 2 * (clear + failing)


@pytest.mark.slow
def test_thousands_of_changes_take_few_evaluations():
    problem = Sparse(d=3000)
    least = minimal(problem, np.ones(3000, np.int8), noisy=False)
    assert len(least.needed) == 6 and least.evaluations < 200


def test_the_command_prints_what_is_needed_and_how_it_was_found(suite, toy):
    suite("run", *toy, "--strategy", "random", "--budget", 60, "--study", "s", "--json")
    (plain,) = map(json.loads, suite("best", "s", *toy, "--json").out.splitlines())
    (found,) = map(json.loads, suite("best", "s", "--minimal", *toy, "--json").out.splitlines())
    least = found["minimal"]
    assert plain["minimal"] is None
    assert plain | {"minimal": 0, "paste": 0} == found | {"minimal": 0, "paste": 0}
    assert least["changes"] == len(plain["paste"].splitlines())
    assert 0 < len(least["needed"]) == len(found["paste"].splitlines()) <= least["changes"]
    assert least["speedup"] >= found["speedup"]
    for change in least["needed"]:
        assert f"{change['name']} = {change['value']}" in found["paste"]
    out = suite("best", "s", "--minimal", *toy).out
    first = least["needed"][0]
    assert f"{len(least['needed'])} of {least['changes']} changes are needed" in out
    assert f"{first['name']}: {first['default']} -> {first['value']}" in out


@pytest.mark.parametrize(
    ("unit", "text"), [("bytes", "48 bytes, 1.246 %"), ("seconds", "1.246 %"), ("quality", "1.246 %")]
)
def test_a_gain_of_what_is_counted_is_counted(unit, text):
    assert gain_text(0.01246, 3853.0, unit) == text
    assert gain_text(np.inf, 3853.0, unit) == "fails"
