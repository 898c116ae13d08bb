"""The package for OptunaHub, with the real library."""

import re
from pathlib import Path

import numpy as np
import optuna
import pytest

import bbo_suite

optunahub = pytest.importorskip("optunahub")

REGISTRY = Path(__file__).parents[3] / "docs" / "optunahub"
PACKAGE = optunahub.load_local_module("compiler_tuning", registry_root=str(REGISTRY))


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.WARNING)


@pytest.mark.parametrize(
    "name",
    ["recorded/tile-transformer", "recorded/gcc-huffman", "ordering/once-50-a", "ordering/small-a"],
)
def test_a_problem_is_searched_by_optuna_from_the_compilers_choice(name):
    problem = PACKAGE.Problem(name)
    assert problem.evaluate(problem.default) == 1
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), directions=problem.directions)
    study.enqueue_trial(problem.default)
    study.optimize(problem, n_trials=15)
    values = np.array([trial.value for trial in study.trials])
    assert values[0] == 1 and len(np.unique(values)) > 2 and study.best_value <= 1
    assert study.trials[0].params == problem.default


def test_what_fails_costs_infinity():
    problem = PACKAGE.Problem("recorded/tile-transformer")
    recorded = bbo_suite.problem("recorded/tile-transformer")
    failing = next(
        row for row in recorded.space.sample(300, np.random.default_rng(0)) if recorded.evaluate(row[None]).status[0]
    )
    params = {
        name: d.to_external_repr(int(i)) for (name, d), i in zip(problem.search_space.items(), failing, strict=True)
    }
    assert problem.evaluate(params) == np.inf


@pytest.mark.slow
def test_its_example_runs_as_printed(monkeypatch, capsys):
    monkeypatch.setattr(optunahub, "load_module", lambda name: PACKAGE)
    text = (REGISTRY / "compiler_tuning" / "README.md").read_text(encoding="utf-8")
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], {})
    assert float(capsys.readouterr().out) >= 1
