"""A search on nearly exact parts finds in few compilations what takes others many."""

import numpy as np
import pytest

import bbo_suite


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "evaluations", "bytes"),
    [
        pytest.param("parser", 20, 1167, marks=pytest.mark.thorough),
        ("queue", 60, 826),
        pytest.param("lexer", 100, 720, marks=pytest.mark.thorough),
    ],
)
def test_graybox_finds_what_annealing_needs_hundreds_for(program, evaluations, bytes):
    problem = bbo_suite.problem(f"inlining/{program}")
    batches = bbo_suite.search("graybox", problem, evaluations, seed=0)
    assert min(batch.values.min() for batch in batches) <= bytes


@pytest.mark.slow
def test_graybox_measures_no_program_twice():
    problem = bbo_suite.problem("inlining/lexer")
    rows = np.concatenate([batch.configs for batch in bbo_suite.search("graybox", problem, 60, seed=0)])
    keys = [tuple(problem.decomposition.described(row)[1].tolist()) for row in rows.astype(np.int64)]
    assert len(set(keys)) == len(keys)


@pytest.mark.slow
def test_runs_store_nearly_exact_parts_and_resume(tmp_path):
    plan = {"budget": 12, "study": "nearly", "results": tmp_path}
    first = bbo_suite.run("graybox", "inlining/queue", **plan)
    again = bbo_suite.run("graybox", "inlining/queue", **plan)
    assert first.runs().equals(again.runs())


@pytest.mark.slow
def test_the_optimum_of_a_small_program_is_found_and_not_beaten():
    problem = bbo_suite.problem("inlining/graph")
    if problem.optimum is None:
        pytest.skip("it is known for another llvmlite")
    best = min(batch.values.min() for batch in bbo_suite.search("graybox", problem, 60, seed=0))
    assert best == problem.optimum < bbo_suite.evaluate(problem, problem.default_row()[None]).values[0]
    assert bbo_suite.problem("inlining/graph@data").optimum is None
