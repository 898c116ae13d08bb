import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bbo_suite
from bbo_suite.core.level import Level
from bbo_suite.errors import UserError
from bbo_suite.recommend import Evidence, choices, published, sees, with_choices
from bbo_suite.registry import Registry

FAMILIES = ("a", "b", "c", "d", "e")


def table(shares, own=1e-4, budgets=(100, 1000)):
    """A row for each strategy, family and budget; shares by strategy, level and family."""
    rows = [
        (family, f"{family}/1", name, level, budget, share, 10 * share, own if np.isscalar(own) else own[name])
        for (name, level), found in shares.items()
        for family, own_shares in found.items()
        for budget, share in zip(budgets, own_shares, strict=True)
    ]
    columns = ["family", "task", "strategy", "level", "budget", "share", "gain", "own"]
    return pd.DataFrame(rows, columns=columns)


ANNEALING = {family: (0.2, 0.4) for family in FAMILIES}


def test_the_best_in_the_mean_over_families_comes_first():
    good = {family: (0.3, 0.5) for family in FAMILIES}
    found = Evidence(table({("annealing", "costs"): ANNEALING, ("good", "costs"): good})).choices(
        "new", Level.COSTS, 100
    )
    assert [each.strategy for each in found] == ["good", "annealing"]
    assert found[1].share == pytest.approx(0.2)
    assert found[0].share == pytest.approx(0.2 + 5 * 0.1 / (5 + 3))  # the lead of five families counts as among eight


def test_the_problems_own_family_outweighs_others():
    other = dict.fromkeys(FAMILIES, (0.3, 0.5)) | {"a": (0.0, 0.0)}
    evidence = Evidence(table({("annealing", "costs"): ANNEALING, ("other", "costs"): other}))
    assert evidence.choices("b", Level.COSTS, 100)[0].strategy == "other"
    assert evidence.choices("a", Level.COSTS, 100)[0].strategy == "annealing"


def test_a_strategy_that_sees_more_than_the_problem_tells_is_left_out():
    parts = dict.fromkeys(FAMILIES, (0.9, 0.9))
    evidence = Evidence(table({("annealing", "costs"): ANNEALING, ("graybox", "parts"): parts}))
    assert [each.strategy for each in evidence.choices("new", Level.STRUCTURE, 100)] == ["annealing"]
    assert evidence.choices("new", Level.PARTS, 100)[0].strategy == "graybox"


def test_two_families_are_too_few_for_a_new_one_but_not_for_themselves():
    few = {"a": (0.9, 0.9), "b": (0.9, 0.9)}
    evidence = Evidence(table({("annealing", "costs"): ANNEALING, ("few", "costs"): few}))
    assert [each.strategy for each in evidence.choices("new", Level.COSTS, 100)] == ["annealing"]
    assert evidence.choices("a", Level.COSTS, 100)[0].strategy == "few"


def test_shares_lie_on_a_line_in_the_logarithm_of_evaluations():
    evidence = Evidence(table({("annealing", "costs"): ANNEALING}))
    after = [evidence.after({"annealing": n}, "share")["annealing"].iloc[0] for n in (10, 100, 316, 1000, 100_000)]
    assert after == pytest.approx([0.2, 0.2, 0.3, 0.4, 0.4], abs=1e-3)


def test_nothing_is_said_of_shorter_runs_than_a_strategy_made():
    rows = table({("annealing", "costs"): ANNEALING, ("late", "costs"): dict.fromkeys(FAMILIES, (0.9, 0.9))})
    evidence = Evidence(rows[(rows["strategy"] != "late") | (rows["budget"] == 1000)])
    assert [each.strategy for each in evidence.choices("new", Level.COSTS, 100)] == ["annealing"]
    assert evidence.choices("new", Level.COSTS, 1000)[0].strategy == "late"


def test_with_little_time_a_quick_strategy_is_better():
    slow = {family: (0.25, 0.45) for family in FAMILIES}
    own = {"annealing": 0.0, "slow": 9.0}
    evidence = Evidence(table({("annealing", "costs"): ANNEALING, ("slow", "costs"): slow}, own))
    assert evidence.choices("new", Level.COSTS, 1000)[0].strategy == "slow"
    best, other = evidence.choices("new", Level.COSTS, 1000, seconds=1000, evaluation=1.0)
    assert (best.strategy, best.evaluations, other.evaluations) == ("annealing", 1000, 100)


def test_a_lead_counts_families():
    mixed = {"a": (0.9, 0.9), "b": (0.1, 0.1), "c": (0.2, 0.4), "d": (0.8, 0.8), "e": (0.7, 0.7)}
    evidence = Evidence(table({("annealing", "costs"): ANNEALING, ("mixed", "costs"): mixed}))
    lead = evidence.lead(*evidence.choices("new", Level.COSTS, 100))
    assert (lead.over, lead.ahead, lead.behind, lead.families) == ("annealing", 3, 1, 5)


@pytest.mark.parametrize(
    ("problem", "level"),
    [("inlining/graph", Level.PARTS), ("recorded/tile-transformer", Level.COSTS), ("llvm/tree", Level.COSTS)],
)
def test_what_a_problem_tells(problem, level):
    assert sees(Registry().problem(problem)) is level


def test_costs_of_parts_are_used_where_a_problem_tells_them():
    assert choices(Registry().problem("inlining/graph"), 200)[0].strategy == "graybox"


def test_a_space_that_the_budget_covers_is_searched_whole():
    problem = Registry().problem("recorded/triton-softmax-8192x4096")
    best = choices(problem, 500)[0]
    assert (best.strategy, best.evaluations, best.share) == ("exhaustive", 480, 1.0)
    assert choices(problem, 479)[0].strategy != "exhaustive"
    assert choices(problem, 500, seconds=479, evaluation=1.0)[0].strategy != "exhaustive"


def test_no_evaluation_is_refused(suite):
    for problem in ("ordering/small-a", "recorded:/none.json"):  # of which the second cannot be loaded
        done = suite("recommend", "--problem", problem, "--budget", 0)
        assert (done.code, done.err) == (1, "error: budget must be 1 or more, not 0\n")


def test_a_time_without_an_evaluation_is_refused():
    with pytest.raises(UserError, match="takes 2 s, and the limit is 1 s"):
        choices(Registry().problem("ordering/small-a"), 100, seconds=1, evaluation=2)


SMALL, LARGE = "recorded/halide-blur", "ordering/small-a"
"""Problems for which 500 evaluations are the whole space, and not."""


def test_auto_stands_for_the_best_on_each_problem(capsys):
    found = with_choices(("auto", "random", "exhaustive"), (SMALL, LARGE), 500, Registry())
    best = choices(Registry().problem(LARGE), 500)[0].strategy
    assert found == {SMALL: ("exhaustive", "random"), LARGE: (best, "random", "exhaustive")}
    assert f"auto: exhaustive on {SMALL}; {best} on {LARGE} (why" in capsys.readouterr().err
    with_choices(("auto",), (SMALL,), 500, Registry())
    assert "auto: exhaustive (why" in capsys.readouterr().err
    assert with_choices(("random",), ("no/such",), 200, Registry()) == {"no/such": ("random",)}


@pytest.mark.slow
def test_auto_on_several_problems_is_resumed_and_validated(suite):
    command = ("run", "--strategy", "auto", "--problem", SMALL, "--problem", LARGE, "--budget", 500, "--study", "both")
    best = choices(Registry().problem(LARGE), 500)[0].strategy
    first = [json.loads(line) for line in suite(*command, "--json").out.splitlines()]
    assert {(run["problem"], run["strategy"]) for run in first} == {(SMALL, "exhaustive"), (LARGE, best)}
    stored = {path: path.read_bytes() for path in Path("results/both").rglob("rows*")}
    again = suite(*command, "--json")
    assert again.code == 0 and len(again.out.splitlines()) == 2
    assert stored and {path: path.read_bytes() for path in stored} == stored
    assert suite("validate", "both").code == 0


def test_a_plugin_may_be_called_auto(tmp_path):
    file = tmp_path / "auto.py"
    file.write_text("from bbo_suite import Strategy\nclass Auto(Strategy):\n    def ask(self, n): ...\n")
    assert with_choices(("auto",), ("tile/rnn",), 200, Registry((file,))) == {"tile/rnn": ("auto",)}


@pytest.mark.slow
def test_auto_runs_from_python(tmp_path):
    study = bbo_suite.run("auto", "tile/rnn", budget=50, results=tmp_path, quiet=True)
    assert {run["strategy"] for run in study} == {"graybox"}


@pytest.mark.slow
def test_the_published_evidence_is_about_strategies_and_families_that_exist():
    registry, rows = Registry(), published().table
    for name, own in rows.groupby("strategy"):
        assert registry.strategy(name).level.word == own["level"].iloc[0]
    assert set(rows["family"]) <= set(registry.families())
    assert rows["share"].between(0, 1).all()
    assert not rows.duplicated(["task", "strategy", "budget"]).any()


def test_the_command_says_what_to_take_and_how_sure_that_is(suite):
    text = suite("recommend", "--problem", "inlining/graph", "--budget", 200).out
    assert "take graybox, which sees costs of parts" in text
    assert "run --problem inlining/graph --strategy graybox --budget 200" in text


PLUGIN = """
import numpy as np
from bbo_suite import Evaluations, Problem, choice, product

class Mine(Problem):
    instances = ("a",)

    def __init__(self, name):
        self.space, self.default = product(*(choice(f"p{i}", [0, 1]) for i in range(9))), np.zeros(9, int)

    def evaluate(self, configs):
        return Evaluations.of(1.0 + configs.sum(axis=1))
"""


def test_the_command_that_comes_next_can_be_run_as_printed(suite, tmp_path):
    (tmp_path / "mine.py").write_text(PLUGIN)
    told = suite("recommend", "--plugin", "mine.py", "--budget", 5, "--seconds", 0.5).out
    assert told.rstrip().endswith("--budget 5 --max-seconds 0.5 --plugin mine.py")
    assert "run --problem mine/a --strategy" in told and "makes 5 in 0.5 s" in told
    assert suite(*told.split("bbo_suite ")[-1].split()).code == 0


def test_beyond_the_longest_runs_of_the_study_the_command_says_so(suite, tmp_path):
    (tmp_path / "large.py").write_text(PLUGIN.replace("range(9)", "range(30)").replace("zeros(9", "zeros(30"))
    words = "the study's longest runs have 10,000 evaluations"
    assert words in suite("recommend", "--plugin", "large.py", "--budget", 10_001).out
    assert words not in suite("recommend", "--plugin", "large.py", "--budget", 10_000).out


def test_auto_says_that_a_time_limit_does_not_count(suite, tmp_path):
    (tmp_path / "limited.py").write_text(PLUGIN)
    run = ("run", "--strategy", "auto", "--plugin", "limited.py", "--budget", 5, "--study")
    assert "auto ignores the time limit" in suite(*run, "timed", "--max-seconds", 9).err
    told = suite(*run, "untimed").err
    assert "the time limit" not in told and "recommend --problem limited/a --budget 5 --plugin" in told


@pytest.mark.slow
def test_the_command_speaks_json(suite):
    told = json.loads(suite("recommend", "--problem", "inlining/graph", "--seconds", 10, "--json").out)
    assert told["choices"][0]["strategy"] == "graybox"
    assert told["seconds_of_one"] > 0
    assert all(math.isfinite(each["share"]) for each in told["choices"])
