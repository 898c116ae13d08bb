"""Recorded spaces as problems: identity, search, and the spaces that ship."""

import json

import numpy as np
import pytest

import bbo_suite
from bbo_problems.recorded.problem import FOLDER, RecordedProblem
from bbo_suite.core.evaluation import default_value, evaluate
from bbo_suite.recording.record import record
from bbo_suite.registry import Registry


def test_the_identity_depends_on_the_content_and_not_on_the_format(load, formats):
    content = formats["kernel_tuner"]
    same = [load(content), load(content, packed=True), load(json.dumps(content, indent=3).encode())]
    same += [load(content | {"cache": dict(reversed(content["cache"].items()))}), load(formats["t4"])]
    assert len({problem.fingerprint() for problem in same}) == 1
    content["cache"]["16,0,a"]["time"] += 1e-9
    assert load(content).fingerprint() != same[0].fingerprint()


def test_recording_a_recorded_space_converts_it(load, formats, write, tmp_path):
    source = write(formats["kernel_tuner"])
    out = tmp_path / "converted.json"
    record(Registry(), f"recorded:{source}", out, None, 0, (), 1, lambda total: lambda done, words: None)
    assert json.loads(out.read_text())["schema_version"] == "1.0.0"
    assert Registry().load(f"recorded:{out}").fingerprint() == Registry().load(f"recorded:{source}").fingerprint()


def test_strategies_propose_only_what_was_measured(load, formats, tmp_path, write):
    path = write(formats["kernel_tuner"])
    for strategy in ("annealing", "random", "exhaustive"):
        (run,) = bbo_suite.run(strategy, f"recorded:{path}", budget=40, batch=4, results=tmp_path / "runs")
        assert run["best"] == run["optimum"] == 1.25e-3
        assert run["unique"] <= 5


def test_shipped_spaces_are_small_and_can_be_beaten():
    assert sum(path.stat().st_size for path in FOLDER.glob("*.json.gz")) < 300 * 1024
    assert RecordedProblem.instances
    for instance in RecordedProblem.instances:
        problem = Registry().load(f"recorded/{instance}")
        assert problem.optimum < default_value(problem)
        assert problem.facts()["recorded problem"] in (FOLDER / "README.md").read_text()


@pytest.mark.parametrize("instance", [i for i in RecordedProblem.instances if i.startswith(("tile", "flags"))])
def test_the_simulator_still_gives_the_recorded_costs(instance):
    recorded = Registry().load(f"recorded/{instance}")
    live = Registry().load(recorded.facts()["recorded problem"])
    if live.fingerprint() != recorded.facts()["recorded fingerprint"]:
        pytest.skip("the simulator has changed since; the README beside the files has the commands to record it again")
    rows = recorded.space.sample(64, np.random.default_rng(0))
    words = [list(recorded.space.describe(row).values()) for row in rows]
    places = [[list(live.space.values(i)).index(value) for i, value in enumerate(row)] for row in words]
    costs = evaluate(live, live.space.check(places)).values
    assert np.allclose(costs, evaluate(recorded, rows).values, rtol=1e-12)
