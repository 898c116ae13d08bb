"""The cursors of tasks that decide layouts follow what an evaluation tells, and no description tells a cost."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import bbo_suite
from bbo_problems.tensor_compiler.hardware.machine import MACHINES
from bbo_suite import Problem
from bbo_suite.parts.cursor import Cursor

pytestmark = pytest.mark.slow  # compiles long

OTHER_COSTS = {"stream": 0.3, "stage": 2.0, "code": 9.0, "loss": 0.3, "chunk": 900.0, "spill": 0.4, "sums": 3.0}
"""Second-order effects, which the compiler does not know when it estimates and chooses."""


@cache
def loaded(name: str) -> Problem:
    return bbo_suite.problem(name)


def parts_at(cursor: Cursor) -> list[tuple[int, float]]:
    keys, counts, _ = cursor.parts()
    return present(keys, counts)


def present(keys: np.ndarray, counts: np.ndarray) -> list[tuple[int, float]]:
    return sorted(part for part in zip(keys.tolist(), counts.tolist(), strict=True) if part[1])


def told(problem: Problem, config: np.ndarray) -> list[tuple[int, float]]:
    parts = problem.evaluate_parts(config[None]).parts
    return sorted(zip(parts.keys.tolist(), parts.counts.tolist(), strict=True))


def steps(problem: Problem, seed: int, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return changes of up to three parameters of each pass; about every second one is taken back by the next."""
    rng, config, found = np.random.default_rng(seed), problem.default_row(), []
    passes = problem.structure().passes
    spans = [np.arange(len(config))] if passes is None else [passes.columns(name) for name in passes.passes]
    for _ in range(count):
        drawn = [rng.choice(span[problem.space.sizes[span] > 1], rng.integers(4)) for span in spans]
        columns = np.unique(np.concatenate(drawn[:: rng.choice([1, -1])][: rng.integers(1, 5)]))
        before = config[columns]
        config[columns] = rng.integers(0, problem.space.sizes[columns])
        found.append((columns, config[columns]))
        if rng.random() < 0.5:
            config[columns] = before
            found.append((columns, before))
    return found


@pytest.mark.parametrize("name", ["layout/rnn", "layout/rnn@v4", "joint/rnn"])
def test_a_walk_has_the_parts_of_each_candidate_and_tells_what_changes(name: str) -> None:
    problem = loaded(name)
    config, cursor = problem.default_row(), problem.structure().parts.cursor(problem.default_row())
    keys, counts, _ = cursor.parts()
    for columns, values in steps(problem, 0, 15):
        config[columns] = values
        touched = cursor.set(columns, values)
        now = cursor.parts(touched)
        changed = (now[0] != keys[touched]) | (now[1] != counts[touched])
        assert changed.all(), "it names places that stay as they are"
        keys[touched], counts[touched], _ = now
        assert present(keys, counts) == parts_at(cursor) == told(problem, config)


@pytest.mark.parametrize("family", ["fusion", "tile", "flags", "layout", "joint"])
def test_a_description_tells_no_cost(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = loaded(f"{family}/rnn")
    configs = np.vstack([problem.default_row()[None], problem.space.sample(3, np.random.default_rng(0))])
    monkeypatch.setitem(MACHINES, "v5e", replace(MACHINES["v5e"], **OTHER_COSTS))
    other = type(problem)("rnn")
    assert not np.isclose(problem.evaluate(configs).values, other.evaluate(configs).values)[0]
    here, there = (p.structure().parts.describe(configs) for p in (problem, other))
    for name in ("starts", "keys", "counts", "features"):
        np.testing.assert_array_equal(getattr(here, name), getattr(there, name))


FOLLOW = """
import sys, numba, numpy as np, bbo_suite
from numba.core import event
[numba.typeof(np.zeros((1,) * n)) for n in range(1, int(sys.argv[1]))]
with event.install_recorder("numba:compile") as seen:
    problem = bbo_suite.problem("fusion/rnn")
    problem.structure().parts.cursor(problem.default_row())
print(*(e.data["dispatcher"].py_func.__module__ for _, e in seen.buffer))
"""


def test_a_process_that_met_other_types_before_finds_the_compiled_code() -> None:
    for types in ("1", "9"):  # the first one may compile
        command = [sys.executable, "-c", FOLLOW, types]
        compiled = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert not compiled


def test_a_candidate_that_overflows_names_the_kernels_and_keeps_the_costs_of_the_others() -> None:
    problem = loaded("joint/rnn")
    configs = problem.space.sample(4, np.random.default_rng(0))
    result, decomposition = problem.evaluate_parts(configs), problem.structure().parts
    failing, described = np.isinf(result.parts.costs), decomposition.describe(configs)
    assert np.isinf(result.values).all() and 0 < failing.sum() < len(failing) / 2
    features = dict(zip(described.keys.tolist(), described.features, strict=True))
    fits = decomposition.feature_names.index("fits")
    assert [features[key][fits] for key in result.parts.keys.tolist()] == (~failing).tolist()


def test_layouts_are_taken_back_after_other_decisions_changed() -> None:
    problem = loaded("joint/rnn")
    config, passes = problem.default_row(), problem.structure().passes
    cursor = problem.structure().parts.cursor(config)
    layout, fusion, flags = (passes.columns(name)[:3] for name in ("layout", "fusion", "flags"))
    for columns, values in ((layout, 1), (fusion, 0), (flags, 1), (layout, config[layout]), (fusion, config[fusion])):
        config[columns] = values
        cursor.set(columns, config[columns])
        assert parts_at(cursor) == told(problem, config)
