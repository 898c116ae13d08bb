"""Recording and reading back."""

import gzip
import json
import resource
import subprocess
import sys
from pathlib import Path
from types import NoneType

import numpy as np
import pytest

from bbo_suite import Enumeration, Level, Problem
from bbo_suite.core.evaluation import evaluate
from bbo_suite.recording import record as recording
from bbo_suite.registry import Registry

PROBLEM = """
import numpy as np
from bbo_suite import Constraint, Evaluations, Problem, Status, choice, product, scale
class Odd(Problem):
    instances = ("a",)
    unit = "bytes"
    calls = 0
    def __init__(self, instance):
        apart = Constraint((0, 2), lambda rows: rows[:, 0] != rows[:, 1])
        values = [scale("täg", [1, 2, 3.5, 4]), choice("mixed", ["1", 1, True]), choice("m", [(1, 2), "b", "c", None])]
        self.space = product(*values, constraints=[apart])
        self.default = np.array([1, 0, 0])
    def evaluate(self, configs):
        type(self).calls += 1
        values = np.sqrt(7 + configs @ np.array([1.1, 3.3, 5.7]))
        status = np.where(configs.sum(axis=1) == 6, Status.TIMEOUT, Status.OK)
        values[status > 0] = np.inf
        return Evaluations(values, status, {int(i): "too slow, \\u00fc" for i in np.flatnonzero(status)})
"""
TELLING = """
    statistics = ("size", "täg")
    def compile(self, configs):
        told = np.column_stack([configs.sum(axis=1) * 10.5, configs[:, 0]])
        told[configs.sum(axis=1) == 6] = np.nan
        return told
"""
"""What compiling tells; one name is that of a parameter, too."""
NAMES = ["odd.json", "odd.json.gz", pytest.param("odd.parquet", marks=pytest.mark.slow)]


@pytest.fixture
def odd(tmp_path):
    path = tmp_path / "odd.py"
    path.write_text(PROBLEM)
    return path


def read_back(path):
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow")
    return Registry().load(f"recorded:{path}")


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_is_read_back_exactly(suite, odd, tmp_path, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    done = suite("record", "odd/a", "--plugin", odd, "--out", name, "--quiet")
    assert (done.code, done.out, done.err) == (0, f"{name}\n", "")
    live, recorded = Registry((odd,)).load("odd/a"), read_back(tmp_path / name)
    assert recorded.space.cardinality == live.space.cardinality == 3 * 12
    assert recorded.unit == "bytes" and not Path(f"{name}.part").exists()
    every, rows = (Enumeration(each.space, np.random.default_rng(0)).rows(0, 36) for each in (recorded, live))
    words = {json.dumps(tuple(recorded.space.describe(r).values())): r for r in every}
    theirs = [
        tuple(v if isinstance(v, (int, float, str, NoneType)) else str(v) for v in live.space.describe(r).values())
        for r in rows
    ]
    same = np.array([words[json.dumps(t)] for t in theirs])
    told, known = evaluate(recorded, same), evaluate(live, rows)
    assert np.array_equal(told.values, known.values) and np.array_equal(told.status, known.status)
    assert told.reasons == known.reasons and (known.status > 0).any()
    assert np.array_equal(same[(rows == live.default).all(axis=1)][0], recorded.default)


@pytest.mark.parametrize("name", NAMES)
def test_what_compiling_tells_is_recorded_too(suite, odd, tmp_path, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    odd.write_text(PROBLEM + TELLING)
    assert not suite("record", "odd/a", "--plugin", odd, "--out", name, "--quiet").code
    recorded = read_back(tmp_path / name)
    rows = Enumeration(recorded.space, np.random.default_rng(0)).rows(0, 36)
    compiler = recorded.task(Level.COMPILATION).compiler
    told, known = compiler(rows), rows[:, [recorded.space.name(i) == "täg (0)" for i in range(3)]]
    worked = evaluate(recorded, rows).status == 0
    assert compiler.statistics == ("size", "täg") and np.isnan(told[~worked]).all() and (~worked).any()
    assert np.array_equal(told[worked, 1:], known[worked]) and (told[worked, 0] % 10.5 == 0).all()
    assert recorded.task(Level.COSTS).compiler is None


def test_a_json_file_follows_the_schema_and_is_always_the_same(suite, odd, tmp_path):
    for name in ("one.json.gz", "two.json.gz"):
        suite("record", "odd/a", "--plugin", odd, "--out", name, "--sample", 9, "--seed", 3)
    assert Path("one.json.gz").read_bytes() == Path("two.json.gz").read_bytes()
    document = json.loads(gzip.decompress(Path("one.json.gz").read_bytes()))
    assert document["schema_version"] == "1.0.0" and document["metadata"]["sample"] == "9 of 36, seed 3"
    required = {"configuration", "times", "invalidity", "correctness"}
    assert len(document["results"]) == 9 and all(required <= result.keys() for result in document["results"])
    assert len({json.dumps(result["configuration"]) for result in document["results"]}) == 9


def test_only_the_named_parameters_vary(suite, odd):
    suite("record", "odd/a", "--plugin", odd, "--out", "part.json", "--parameter", "täg", "--parameter", "m")
    recorded = read_back(Path("part.json").absolute())
    assert [recorded.space.name(i) for i in range(2)] == ["täg", "m"] and recorded.space.cardinality == 12


def test_an_interrupted_recording_resumes(suite, odd, monkeypatch):
    monkeypatch.setattr(recording, "BATCH", 10)
    suite("record", "odd/a", "--plugin", odd, "--quiet", "--out", "whole.json")
    shown = []

    def record(stop):
        def show(done, problem):
            shown.append(done)
            if done == stop:
                raise KeyboardInterrupt

        recording.record(Registry((odd,)), "odd/a", Path("cut.json"), None, 0, (), 1, lambda total: show)

    with pytest.raises(KeyboardInterrupt):
        record(stop=20)
    monkeypatch.setattr(Problem, "facts", lambda self: {"noise": "is measured, and differs each time"})
    with Path("cut.json.part").open("ab") as part:
        part.write(b'[1.5, 0, "cut')
    assert not Path("cut.json").exists()
    record(stop=None)
    assert shown == [0, 10, 20, 20, 30, 36]
    assert read_back(Path("cut.json").absolute()).facts()["recorded noise"] == "is measured, and differs each time"
    results = [json.loads(Path(name).read_text())["results"] for name in ("cut.json", "whole.json")]
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "there.json"], "exists already"),
        (["--out", "other.json"], "it is another recording"),
        (["--out", "damaged.json"], "line 1 is damaged"),
    ],
)
def test_mistakes(suite, odd, arguments, message):
    Path("there.json").touch()
    Path("other.json.part").write_text('{"problem": "odd/b"}\n')
    Path("damaged.json.part").write_text('{"problem": \n')
    done = suite("record", "odd/a", "--plugin", odd, *arguments)
    assert done.code == 1 and message in done.err


@pytest.mark.slow
@pytest.mark.parametrize("room", [2000, pytest.param(40_000, marks=pytest.mark.slow)])
def test_a_full_disk_is_one_sentence_and_keeps_what_was_measured(suite, tmp_path, room):
    """In the middle of the measurements, and when the file itself is written."""
    command = ("record", "recorded/gcc-huffman", "--sample", "500", "--out", "whole.json", "--quiet")
    limit = (room, resource.RLIM_INFINITY)
    done = subprocess.run(
        [sys.executable, "-m", "bbo_suite", *command], cwd=tmp_path, capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
    )  # fmt: skip
    assert done.returncode == 1 and done.stderr.startswith("error: cannot write whole.json")
    assert "File too large" in done.stderr and done.stderr.count("\n") == 1
    assert (tmp_path / "whole.json.part").exists() and not (tmp_path / "whole.json").exists()
    assert suite(*command).code == 0
    assert len(json.loads((tmp_path / "whole.json").read_text())["results"]) == 500
