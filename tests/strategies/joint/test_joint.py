import itertools
from pathlib import Path

import numpy as np
import pytest

import bbo_suite
from bbo_strategies.joint import Joint, JointOptions
from bbo_strategies.joint.chain import GlobalStore
from bbo_suite import Space, Task, UserError
from bbo_suite.runs.loop import run_loop
from bbo_suite.store.identity import Run
from bbo_suite.store.run_folder import RunFolder
from bbo_suite.testing import play

from .toy_compiler import TILES, ToyCompiler, kernel_cost

JOINTLY = "layout+fusion: exhaustive; tile: exhaustive"
IN_TURN = "layout: exhaustive; fusion: exhaustive; tile: exhaustive"


LONG = "abcabcabca"


def search(problem, schedule="", budget=400, batch=16, seed=0, **options):
    """Return all candidates and their costs."""
    strategy = Joint(problem.task(), budget, np.random.default_rng(seed), JointOptions(schedule, **options))
    rows, values = zip(*play(strategy, lambda rows: problem.evaluate(rows).values, batch), strict=True)
    return np.concatenate(rows), np.concatenate(values)


def optimum(problem):
    """Return the lowest cost of all programs, each kernel with its best tile."""
    passes, costs = problem.passes, []
    for choice in itertools.product([0, 1], repeat=3 * len(problem.passes.source.kinds)):
        graph = passes.source
        for name in ("layout", "fusion"):
            graph = passes.apply(name, graph, np.array(choice))
        contents = [graph.content(kernel) for kernel in graph.kernels]
        costs.append(sum(min(kernel_cost(c, tile) for tile in range(min(TILES, 2 + len(c)))) for c in contents))
    return min(costs)


def test_joint_finds_an_optimum_that_tuning_one_pass_after_another_misses():
    problem = ToyCompiler()
    best = optimum(problem)
    assert search(problem, JOINTLY)[1].min() == best
    assert search(problem, IN_TURN)[1].min() > 1.5 * best


def test_a_separable_step_proves_the_optimum_of_every_kernel_at_the_least_cost():
    problem = ToyCompiler("abcabca")
    rows, values = search(problem, "tile: exhaustive")
    tiles = [min(kernel_cost(((kind, 0),), tile) for tile in range(3)) for kind in "abcabca"]
    assert values.min() == sum(tiles)
    assert len(rows) == 1 + 3 * (3 - 1)  # the default, and each other tile of three different kernels


def test_exhaustive_steps_evaluate_nothing_twice():
    rows, _ = search(ToyCompiler(), "tile: exhaustive; layout: exhaustive")
    assert len(np.unique(rows, axis=0)) == len(rows) == 1 + 2 * (3 - 1) + 2**4 - 1


def test_unspent_budget_of_a_step_goes_to_steps_that_can_use_it():
    for schedule in ("tile: exhaustive; layout+fusion: annealing", "layout+fusion: annealing; tile: exhaustive"):
        rows, _ = search(ToyCompiler(LONG), schedule, budget=300)
        assert len(rows) == 300
    assert (rows[-20:, : 3 * len(LONG)] != rows[-1, : 3 * len(LONG)]).any()  # back in the first step


def test_every_step_gets_an_equal_share_of_the_budget():
    rows, _ = search(ToyCompiler(LONG), "layout: annealing; fusion: annealing; tile: annealing", budget=301)
    n = len(LONG)
    own = {"layout": slice(0, n), "fusion": slice(n, 3 * n), "tile": slice(3 * n, 5 * n)}
    parts = np.split(rows, [101, 201, 203])[:3]  # a kernel has few tiles: two evaluations on, other steps go on
    varies = {name: [(part[:, c] != part[0, c]).any() for part in parts] for name, c in own.items()}
    assert varies["layout"] == [True, False, False]
    assert varies["fusion"][1:] == [True, False]
    assert varies["tile"] == [False, False, True]


@pytest.mark.parametrize("budget", [1, 2, 3, 17])
@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("schedule", ["", "tile: annealing; fusion: random"])
def test_the_budget_is_spent_and_the_default_comes_first(schedule, budget, batch):
    rows, _ = search(ToyCompiler(), schedule, budget, batch)
    assert len(rows) == budget and np.array_equal(rows[0], ToyCompiler().default)


def test_a_run_in_which_all_candidates_fail_ends_normally():
    problem = ToyCompiler(fail=True)
    rows, _ = search(problem, "", 100)
    assert len(rows) == 100
    assert len(search(problem, JOINTLY, 1000)[0]) < 300


def test_a_step_whose_strategy_uses_parts_learns_from_costs_alone():
    rows, values = search(ToyCompiler(), "layout+fusion+tile: graybox", 100)
    assert len(np.unique(rows, axis=0)) > 20 and values.min() < values[0]


def test_a_search_continues_from_the_best_candidate():
    rows, values = search(ToyCompiler("abcabca"), "", 400, stints=4)
    for start in (134, 267):
        best = rows[values[:start].argmin()]
        assert min((row != best).sum() for row in rows[start : start + 20]) <= 6


def test_the_store_is_never_used_if_it_is_switched_off(monkeypatch):
    def refuse(*_):
        raise AssertionError("the store was used")

    monkeypatch.setattr(GlobalStore, "learn", refuse)
    monkeypatch.setattr(GlobalStore, "recall", refuse)
    assert search(ToyCompiler(), JOINTLY, store=False)[1].min() == optimum(ToyCompiler())
    with pytest.raises(AssertionError):
        search(ToyCompiler(), JOINTLY)


def test_a_task_without_passes_is_treated_as_one_pass():
    space = Space([3, 2, 4])
    task = Task("plain", space, np.array([1, 1, 1]), "s")
    player = Joint(task, 99, np.random.default_rng(0), JointOptions("all: exhaustive"))
    rows = []
    while len(configs := player.ask(10)):
        rows.append(configs)
        player.tell(configs, configs.sum(axis=1).astype(float))
    assert len(np.unique(np.concatenate(rows), axis=0)) == sum(map(len, rows)) == 24
    with pytest.raises(UserError, match="'layout'"):
        Joint(task, 9, np.random.default_rng(0), JointOptions("layout: exhaustive"))


def test_a_schedule_can_be_given_on_the_command_line(tmp_path):
    arguments = {"plugins": [Path(__file__).with_name("toy_compiler.py")], "results": tmp_path, "budget": 60, "jobs": 1}
    run = {"strategies": "joint", "problems": "toy_compiler/abab", **arguments}
    texts = {"schedule": "layout+fusion: random; tile: exhaustive", "store": "no"}
    (summary,) = bbo_suite.run(**run, option_texts=texts)
    assert summary["level"] == "structure" and summary["evaluations"] == 60


def test_a_run_that_was_cut_resumes_to_the_same_candidates(tmp_path):
    def perform(name, stops_after):
        problem, options = ToyCompiler(LONG), {"schedule": "", "store": True, "stints": 3}
        run = Run(problem.id, problem.fingerprint(), "joint", options, 0, 400, 16)
        facts = {"default": 1.0, "optimum": None, "unit": problem.unit, "level": "structure"}
        answers = itertools.chain([False] * stops_after, itertools.repeat(True))
        with RunFolder(tmp_path / name, run.identity(), facts) as folder:
            run_loop(run, problem, Joint, folder, lambda: next(answers))
            return [(row.digest, row.value) for row in folder.rows()]

    perform("whole", 1000)
    for stops_after in (1, 12, 20, 1000):
        perform("cut", stops_after)
    assert perform("cut", 0) == perform("whole", 0) and len(perform("cut", 0)) == 400
