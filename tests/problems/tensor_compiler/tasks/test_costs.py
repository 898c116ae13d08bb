"""Costs of all tasks on programs: those of this version of the model, and defaults that are good and not the best."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bbo_suite
from bbo_problems.tensor_compiler.graph.build import read_graph
from bbo_problems.tensor_compiler.hardware.machine import COST_MODEL
from bbo_problems.tensor_compiler.models import SHIPPED
from bbo_problems.tensor_compiler.tasks.programs import program
from bbo_suite import UserError

# Costs of the default, of ones and of zeros for fusion; of the default with every seventh decision 0 for the others.
GOLDEN = {
    "fusion/mobilenet": (0.0418903304, 0.0431898111, 0.188464983),
    "fusion/resnet50": (0.00708766077, 0.0084678722, 0.0454560235),
    "fusion/rnn": (0.0535854235, 0.0618881674, 0.0985534995),
    "fusion/transformer": (0.0120194454, 0.014273434, 0.0372582282),
    "tile/rnn": (0.088356295,),
    "flags/rnn": (0.0563935473,),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_costs_are_those_of_this_version_of_the_model(name: str) -> None:
    """If this fails and the programs are the same, raise COST_MODEL; put the new costs here."""
    assert COST_MODEL == 9
    problem = bbo_suite.problem(name)
    rows = np.vstack([problem.default, np.ones_like(problem.default), np.zeros_like(problem.default)])
    if not name.startswith("fusion/"):
        rows = rows[:1]
        rows[:, ::7] = 0
    assert problem.evaluate(rows).values == pytest.approx(GOLDEN[name], rel=1e-6)


@pytest.mark.slow
def test_a_fingerprint_has_the_version_that_last_changed_the_program() -> None:
    shipped = [path.name.removesuffix(".hlo.gz") for path in SHIPPED.glob("*.hlo.gz")]
    versions = {name: read_graph(program(name)).cost_model for name in shipped}
    assert versions == {"mobilenet": 9, "resnet50": 8, "rnn": 8, "transformer": 8}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "program", "least", "most"),
    [
        ("fusion", "resnet50", 0, 0.5),
        ("fusion", "transformer", 0, 0.5),
        ("tile", "resnet50", 0, 0.5),
        ("tile", "transformer", 0, 0.5),
        ("flags", "resnet50", 0, 0.5),
        ("flags", "transformer", 0, 0.5),
        ("layout", "resnet50", -1, 0.2),
        ("layout", "rnn", -1, 0.2),
        ("layout", "transformer", -1, 0.2),
        ("layout", "mobilenet", -1, 0.2),
    ],
)
def test_a_change_of_the_default_seldom_gains_and_a_random_candidate_never(
    family: str, program: str, least: float, most: float
) -> None:
    problem = bbo_suite.problem(f"{family}/{program}")
    default, rng = problem.evaluate(problem.default[None]).values[0], np.random.default_rng(0)
    trials = np.repeat(problem.default[None], 60 if family == "layout" else 2000, axis=0)
    columns = rng.choice(np.flatnonzero(problem.space.sizes > 1), len(trials))
    trials[np.arange(len(trials)), columns] = rng.integers(0, problem.space.sizes[columns])
    values = problem.evaluate(trials).values
    assert least < (values < default * (1 - 1e-9)).mean() < most
    assert (values > default * (1 + 1e-9)).any()
    assert (problem.evaluate(problem.space.sample(20, rng)).values > default).all()


@pytest.mark.parametrize(
    ("family", "result"),
    [
        ("fusion", "f32[64,48]{1,0} dot(p, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
        ("layout", "f32[64,32]{1,0} negate(p)"),
    ],
)
def test_a_program_without_decisions_gives_one_sentence(family: str, result: str, tmp_path: Path) -> None:
    file = tmp_path / "plain.hlo"
    given = "  p = f32[64,32]{1,0} parameter(0)\n  w = f32[32,48]{1,0} parameter(1)\n"
    file.write_text(f"HloModule m\n\nENTRY e {{\n{given}  ROOT r = {result}\n}}\n")
    with pytest.raises(UserError, match="nothing to tune"):
        bbo_suite.problem(f"{family}:{file}")
