"""The tasks for CARP-S, with the real library."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bbo_suite

pytest.importorskip("carps")
from carps.utils.trials import StatusType, TrialInfo

PACKAGE = Path(__file__).parents[3] / "docs" / "carps"


@pytest.fixture
def tasks(monkeypatch):
    monkeypatch.syspath_prepend(str(PACKAGE))
    import compiler_tuning

    return compiler_tuning


@pytest.mark.slow
@pytest.mark.parametrize("name", ["recorded/tile-transformer", "ordering/once-50-a", "ordering/small-a"])
def test_the_compilers_choice_costs_one_and_others_what_the_problem_says(tasks, name):
    function = tasks.CompilerTuning(name)
    default = function.configspace.get_default_configuration()
    assert function.evaluate(TrialInfo(default)).cost == 1
    function.configspace.seed(0)
    values = [function.evaluate(TrialInfo(each)) for each in function.configspace.sample_configuration(30)]
    assert len({value.cost for value in values}) > 2
    assert all(value.cost > 0 for value in values if value.status == StatusType.SUCCESS)


@pytest.mark.slow
def test_what_fails_is_told_and_has_a_finite_cost(tasks):
    name = "recorded/tile-transformer"
    problem, function = bbo_suite.problem(name), tasks.CompilerTuning(name)
    rows = problem.space.sample(300, np.random.default_rng(0))
    failing = rows[np.flatnonzero(problem.evaluate(rows).status)[0]]
    default = function.configspace.get_default_configuration()
    names = tasks.Benchmark(problem).parameters
    for parameter, place in zip(names, failing, strict=True):
        kind = function.configspace[parameter]
        default[parameter] = kind.choices[place] if hasattr(kind, "choices") else int(place)
    function.configspace.seed(0)
    values = [function.evaluate(TrialInfo(each)) for each in function.configspace.sample_configuration(30)]
    costs = [value.cost for value in values if value.status == StatusType.SUCCESS]
    value = function.evaluate(TrialInfo(default))
    assert value.status == StatusType.CRASHED and value.cost == 2 * max(1, *costs)


@pytest.mark.slow
def test_a_task_runs_by_the_command_of_carps(tmp_path):
    command = [
        *(sys.executable, "-m", "carps.run", f"hydra.searchpath=[file://{PACKAGE / 'configs'}]"),
        *("+task/compiler_tuning=config", "task.objective_function.problem=recorded/triton-matmul-4096"),
        *("+optimizer/randomsearch=config", "task.optimization_resources.n_trials=10"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, env=environment)
    (log,) = tmp_path.rglob("trial_logs.jsonl")
    assert len(log.read_text(encoding="utf-8").splitlines()) == 10
