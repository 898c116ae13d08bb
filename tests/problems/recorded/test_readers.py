"""Every format gives the same space; recorded spaces as problems; those that ship, and files of real tuners."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import bbo_suite
from bbo_problems.recorded.problem import FOLDER, RecordedProblem
from bbo_suite import Enumeration, Kind, Status, UserError
from bbo_suite.core.evaluation import default_value, evaluate
from bbo_suite.recording.record import record
from bbo_suite.registry import Registry


def measured(problem):
    """Return the rows of all configurations that were measured; without a constraint, all of the space's."""
    space = problem.space
    return space.components[0].rows if space.components else np.array(list(product(*map(range, space.sizes))))


def costs(problem):
    """Return the cost of every measured configuration, by its values as text."""
    rows = measured(problem)
    values = problem.evaluate(rows).values.tolist()
    return {tuple(problem.space.describe(row).values()): value for row, value in zip(rows, values, strict=True)}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", ["kernel_tuner", "t4", "ktt", "catbench"])
def test_four_formats_give_the_same_measurements(load, formats, name, packed):
    problem = load(formats[name], packed=packed)
    space = problem.space
    known = {k: list(space.values(i)) for i, k in enumerate(map(space.name, range(3)))}
    assert known == {"block": [16, 32, 64], "unroll": [0, 1], "mode": ["a", "b"]}
    assert space.kinds.tolist() == [Kind.SCALE, Kind.SCALE, Kind.CHOICE]
    seconds = {
        k: v / 1e3
        for k, v in zip([(16, 0, "a"), (16, 1, "a"), (32, 0, "b"), (64, 0, "a")], (4, 2.5, 1.25, 8), strict=True)
    }
    assert costs(problem) == pytest.approx({**seconds, (64, 1, "b"): np.inf}, rel=1e-15)
    assert space.cardinality == 5 and problem.optimum == 1.25e-3 and problem.unit == "seconds"
    assert default_value(problem) == 2.5e-3
    assert "median" in problem.facts()["default is"] and problem.facts()["failed"] == "1 runtime_error"


def test_unmeasured_configurations_are_forbidden_and_failed_ones_fail(load, formats):
    problem = load(formats["kernel_tuner"])
    result = evaluate(problem, problem.space.check([[0, 0, 1], [2, 1, 1], [0, 0, 0]]))
    assert result.status.tolist() == [Status.FORBIDDEN, Status.RUNTIME_ERROR, Status.OK]
    assert "RuntimeFailedConfig" in result.reasons[1]


def test_a_configuration_that_is_measured_again_costs_the_median(load, formats):
    results = formats["t4"]["results"]
    for time in (6.0, 4.5):
        again = json.loads(json.dumps(results[0]))
        again["measurements"][0]["value"] = time
        results.append(again)
    failed = json.loads(json.dumps(results[3])) | {"configuration": results[1]["configuration"]}
    problem = load(formats["t4"] | {"results": [failed, *results]})
    assert costs(problem)[16, 0, "a"] == 4.5e-3
    assert costs(problem)[16, 1, "a"] == 2.5e-3
    assert problem.facts()["repeated"].startswith("3 additional measurements")


@pytest.mark.parametrize(
    ("word", "status"),
    [("compile", 2), ("runtime", 3), ("timeout", 4), ("correctness", 5)],
)
def test_every_kind_of_failure_in_t4_is_read(load, formats, word, status):
    formats["t4"]["results"][3]["invalidity"] = word
    problem = load(formats["t4"])
    assert evaluate(problem, measured(problem)).status.tolist().count(status) == 1


def test_a_truncated_cache_keeps_its_complete_rows(load, formats):
    content = formats["kernel_tuner"]
    text = json.dumps(content, indent=0, ensure_ascii=False)
    whole = costs(load(content))
    first = text.index("timestamp") + 60
    seen = set()
    for stop in (*range(first, len(text), 23), len(text) - 2):
        problem = load(text.encode()[:stop])
        found = costs(problem)
        assert found.items() <= whole.items()
        assert problem.facts()["cut off"].startswith("yes")
        seen.add(len(found))
    assert seen == {1, 2, 3, 4, 5}


def test_units_of_t4_are_converted(load, formats):
    for unit, factor in (("seconds", 1.0), ("microseconds", 1e-6), ("ns", 1e-9)):
        for result in formats["t4"]["results"]:
            result["measurements"][0]["unit"] = unit
        assert load(formats["t4"]).optimum == pytest.approx(1.25 * factor, rel=1e-15)
    for result in formats["t4"]["results"]:
        result["measurements"][0]["unit"] = "bytes"
    assert (load(formats["t4"]).unit, load(formats["t4"]).optimum) == ("bytes", 1.25)


SPMM = b"""\
chunk_size,omp_num_threads,permutation,hostname,compute_time,compute_times,Timestamps,Feasibility,energy
16,8,"(1, 0, 2, 3, 4)",node1,128.68,"[144.7, 128.5]",1702590628258.0,1.0,4.6
64,8,"(0, 4, 1, 3, 2)",node2,117.49,"[130.8, 117.3]",1702590634957.0,1.0,4.8
64,16,"(0, 4, 1, 3, 2)",node1,0.0,[],1702590641241.0,0.0,0.0
"""
ASUM = b"tuned_sp0,tuned_gs0,iterations,timeouts,compute_time,energy\r\n4096,16,10,60000,198.704128,84.1\r\n"


def test_columns_of_catbench_that_are_no_parameters_are_left_out(load):
    problem = load(SPMM)
    names = [problem.space.name(i) for i in range(len(problem.space))]
    assert names == ["chunk_size", "omp_num_threads", "permutation"]
    assert problem.space.kinds.tolist() == [Kind.SCALE, Kind.SCALE, Kind.CHOICE]
    one, other = "(1, 0, 2, 3, 4)", "(0, 4, 1, 3, 2)"
    found = {(16, 8, one): 0.12868, (64, 8, other): 0.11749, (64, 16, other): np.inf}
    assert costs(problem) == pytest.approx(found, rel=1e-15)
    assert "not feasible" in evaluate(problem, measured(problem)).reasons[2]
    few = load(ASUM)
    assert costs(few) == pytest.approx({(4096, 16): 0.198704128}, rel=1e-15)
    assert (few.facts()["iterations"], few.facts()["timeouts"]) == ("10", "60000")


def test_cells_of_catbench_are_taken_as_they_are(load):
    text = 'order, mask, text, Feasibility, compute_time\r\n0_1, 9007199254740992, "x\ny", 1, 2\r\n'
    problem = load(f'{text}1_0, 9007199254740993, "x\x0by", 1, 3\r\n'.encode())
    assert costs(problem) == {("0_1", 2**53, "x\ny"): 0.002, ("1_0", 2**53 + 1, "x\x0by"): 0.003}
    assert problem.space.kinds.tolist() == [Kind.CHOICE, Kind.SCALE, Kind.CHOICE]


def test_tiles_of_tpu_graphs_are_scaled_by_the_default(load, formats):
    problem = load(formats["tile"])
    moving = np.flatnonzero(problem.space.sizes > 1)
    assert [problem.space.name(i) for i in moving] == ["kernel 0", "kernel 1"]  # neither sums nor products
    unit = np.median([1000, 1000, 2000, 4000]) / 1e9
    found = {k[:2]: v / unit for k, v in costs(problem).items()}
    assert found == pytest.approx({(8, 128): 1.1, (8, 256): 0.5, (16, 128): 1.5})  # 1.1: the median of 1 and 1.2
    assert default_value(problem) == pytest.approx(1.1 * unit)


def test_layouts_of_tpu_graphs_are_distinguished_by_content(load, formats):
    problem = load(formats["layout"])
    assert [problem.space.name(i) for i in range(2)] == ["node 3", "node 7"]
    assert problem.space.sizes.tolist() == [3, 2] and problem.space.cardinality == 4
    assert default_value(problem) == 900e-9 and problem.optimum == 700e-9


@pytest.mark.parametrize("name", ["tile", "layout"])
@pytest.mark.parametrize("dtype", ["<f2", ">f8", "u2"])
def test_any_type_of_run_times_gives_the_same_costs(load, formats, name, dtype):
    arrays = {key: formats[name][key].astype(dtype) for key in formats[name] if key.startswith("config_runtime")}
    assert costs(load(formats[name] | arrays)) == costs(load(formats[name]))


def test_a_product_that_exceeds_an_integer_is_read(load, formats):
    rng = np.random.default_rng(0)
    features = rng.integers(-1, 6, (50, 60, 18)).astype(np.float32)
    arrays = {"node_config_ids": np.arange(60), "config_runtime": np.arange(1, 51)}
    problem = load(formats["layout"] | arrays | {"node_config_feat": features})
    assert problem.space.cardinality == 50 and problem.space.sizes.prod(dtype=float) > 2.0**63
    assert evaluate(problem, measured(problem)).status.max() == 0
    rows = problem.space.sample(9, rng)
    assert np.isfinite(evaluate(problem, rows).values).all()
    rows[:, 0] = (rows[:, 0] + 1) % problem.space.sizes[0]
    assert (evaluate(problem, rows).status == Status.FORBIDDEN).all()


def with_unit(document, unit):
    """Return T4 whose results are in a unit, as their only objective."""
    for row in document["results"]:
        row["measurements"][0] |= {"name": "m", "unit": unit}
        row |= {"objectives": ["m"], "times": {}}
    return document | {"metadata": {}}


@pytest.mark.parametrize(
    ("unit", "known_as", "costs_of_4_and_8"),
    [
        ("ms", "seconds", (4e-3, 8e-3)),
        ("Hours", "seconds", (14400, 28800)),
        ("mJ", "mJ", (4, 8)),
        ("J*s", "J*s", (4, 8)),
        ("KiB", "KiB", (4, 8)),
        ("instructions", "instructions", (4, 8)),
        ("ns/op", "ns/op", (4, 8)),
        ("pJ per bit", "pJ per bit", (4, 8)),
        ("bytes/token", "bytes/token", (4, 8)),
        ("GFLOP/s", "s/GFLOP", (1 / 4, 1 / 8)),
        ("TFLOPS", "s/Tflop", (1 / 4, 1 / 8)),
        ("MB/sec", "sec/MB", (1 / 4, 1 / 8)),
        ("Gbps", "s/Gbyte", (1 / 4, 1 / 8)),
        ("fps", "s/frame", (1 / 4, 1 / 8)),
        ("tokens per second", "second/tokens", (1 / 4, 1 / 8)),
        ("GFLOP/s/W", "s*W/GFLOP", (1 / 4, 1 / 8)),
        ("IPC", "cycle/instruction", (1 / 4, 1 / 8)),
    ],
)
def test_in_every_known_unit_less_is_better(load, formats, unit, known_as, costs_of_4_and_8):
    problem = load(with_unit(formats["t4"], unit))
    found = costs(problem)
    assert (found[16, 0, "a"], found[64, 0, "a"]) == pytest.approx(costs_of_4_and_8, rel=1e-15)
    assert problem.unit == known_as and found[64, 1, "b"] == np.inf
    assert ("a cost is" in problem.facts()) == (costs_of_4_and_8[0] == 1 / 4)


@pytest.mark.parametrize(
    ("objective", "known_as", "best"),
    [
        ("nvml_energy", "J", 1.25),
        ("ps_energy", "J", 1.25),
        ("energy", "J", 1.25),
        ("bytes", "bytes", 1.25),
        ("GFLOP/s", "s/GFLOP", 1 / 8),
        ("GFLOPS/W", "W/GFLOPS", 1 / 8),
        ("TFLOP/J", "J/TFLOP", 1 / 8),
        ("GB/s", "s/GB", 1 / 8),
    ],
)
def test_objectives_of_kernel_tuner_become_costs(load, formats, objective, known_as, best):
    rows = formats["kernel_tuner"]["cache"].values()
    for row in rows:
        row[objective] = row["time"]
        row["time"] = 3.0  # in a real file it stands beside each objective
    problem = load(formats["kernel_tuner"] | {"objective": objective})
    assert (problem.unit, problem.optimum) == (known_as, best)
    assert costs(problem)[64, 1, "b"] == np.inf and ("a cost is" in problem.facts()) == (best == 1 / 8)


@pytest.mark.parametrize("unit", ["points", "%", "x", "GFLOPs", "FLOP/byte", "MHz", "s/s", "dB", "/", "s/"])
def test_a_unit_without_a_known_direction_is_refused(load, formats, unit):
    with pytest.raises(UserError, match="not known whether less is better"):
        load(with_unit(formats["t4"], unit))
    ours = with_unit(formats["t4"], unit) | {"metadata": {"made by": "bbo_suite 0.1.0", "unit": unit}}
    assert (load(ours).unit, load(ours).optimum) == (unit, 1.25)


def test_a_rate_of_0_is_a_failure(load, formats):
    document = with_unit(formats["t4"], "GFLOP/s")
    document["results"][0]["measurements"][0]["value"] = 0
    problem = load(document)
    assert costs(problem)[16, 0, "a"] == np.inf and problem.optimum == 1 / 8


def test_the_identity_depends_on_the_content_and_not_on_the_format(load, formats):
    content = formats["kernel_tuner"]
    same = [load(content), load(content, packed=True), load(json.dumps(content, indent=3).encode())]
    same += [load(content | {"cache": dict(reversed(content["cache"].items()))}), load(formats["t4"])]
    assert len({problem.fingerprint() for problem in same}) == 1
    content["cache"]["16,0,a"]["time"] += 1e-9
    assert load(content).fingerprint() != same[0].fingerprint()


@pytest.mark.parametrize("name", ["converted.json", pytest.param("converted.parquet", marks=pytest.mark.slow)])
def test_recording_a_recorded_space_converts_it(load, formats, write, tmp_path, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    for row in formats["kernel_tuner"]["cache"].values():  # what no column of Parquet holds
        row |= {"block": row["block"] + 2**70, "unroll": row["unroll"] or None}
    source, out = write(formats["kernel_tuner"]), tmp_path / name
    record(Registry(), f"recorded:{source}", out, None, 0, (), 1, lambda total: lambda done, words: None)
    assert name.endswith("parquet") or json.loads(out.read_text())["schema_version"] == "1.0.0"
    assert Registry().load(f"recorded:{out}").fingerprint() == Registry().load(f"recorded:{source}").fingerprint()


def test_strategies_propose_only_what_was_measured(load, formats, tmp_path, write):
    path = write(formats["kernel_tuner"])
    for strategy in ("annealing", "random", "exhaustive"):
        (run,) = bbo_suite.run(strategy, f"recorded:{path}", budget=40, batch=4, results=tmp_path / "runs")
        assert run["best"] == run["optimum"] == 1.25e-3
        assert run["unique"] <= 5


@pytest.mark.slow
def test_shipped_spaces_are_small_and_can_be_beaten():
    assert sum(path.stat().st_size for path in FOLDER.glob("*.json.gz")) < 300 * 1024
    assert RecordedProblem.instances
    for instance in RecordedProblem.instances:
        problem = Registry().load(f"recorded/{instance}")
        assert problem.optimum < default_value(problem)
        assert problem.facts()["recorded problem"] in (FOLDER / "README.md").read_text()


@pytest.mark.slow
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


DATA = Path(__file__).parents[4] / "shared/data"
needs_files = pytest.mark.skipif(not DATA.is_dir(), reason="the real files are not here")


KNOWN = {
    "kernel_tuner/convolution_milo-A100.json.gz": (10240, 4362, 4201, 0.5536e-3, 1.834e-3),
    "kernel_tuner/convolution_milo-A100_T4.json.gz": (10240, 4362, 4201, 0.5536e-3, 1.834e-3),
    "kernel_tuner/dedispersion_milo-A100_T4.json.gz": (22272, 11130, 11130, 68.117e-3, 72.499e-3),
    "kernel_tuner/unused-kt_gemm-RTX_3090.json.gz": (82944, 17956, 17956, 5.6578e-3, 14.578e-3),
    "ktt/coulomb_2080_full_search_space.json.gz": (None, 210, 210, 769.696e-6, 2244.21e-6),
}


@needs_files
@pytest.mark.parametrize("name", KNOWN)
def test_counts_and_times_are_the_published_ones(name):
    product, measured, valid, best, median = KNOWN[name]
    problem = Registry().load(f"recorded:{DATA / name}")
    assert product is None or np.prod(problem.space.sizes) == product
    assert problem.space.cardinality == measured
    values = problem.evaluate(Enumeration(problem.space, np.random.default_rng(0)).rows(0, measured))
    assert (values.status == Status.OK).sum() == valid
    assert problem.optimum == pytest.approx(best, rel=1e-4)
    assert np.median(values.values[values.status == Status.OK]) == pytest.approx(median, rel=1e-3)


@pytest.mark.slow
@needs_files
def test_two_formats_of_one_space_are_one_problem():
    first, second = (Registry().load(f"recorded:{DATA / name}") for name in list(KNOWN)[:2])
    assert first.fingerprint() == second.fingerprint()
