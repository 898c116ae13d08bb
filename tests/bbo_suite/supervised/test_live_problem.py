"""Problems on supervised children: statuses, the cache, several workers, time limits, and resumed runs."""

import json
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from bbo_toys import Climber, perform, rows_of

from bbo_suite import Status, product, sequence
from bbo_suite.core.evaluation import evaluate
from bbo_suite.store.rows import read_rows
from bbo_suite.supervised import Cache, LiveProblem, Service
from bbo_suite.supervised.problem import packed, unpacked

HERE = Path(__file__).parent
REQUESTS = [0, 1, 2, ("exit", 0), ("die in stage", 0), ("raise", "no"), ("sleep", 60), ("wrong", 0)]


class Live(LiveProblem):
    """A sum over two slots, or the outcome of a compiler that misbehaves."""

    id = "live/toy"

    def __init__(self, cache=None, target="supervised_targets:add"):
        self.space = product(sequence("request", 2, REQUESTS))
        self.default = np.array([1, 1])
        self._serve(Service(target, (REQUESTS,), seconds=0.5), cache)

    def request(self, config):
        return tuple(config.tolist())


@pytest.mark.slow
def test_every_fault_has_its_status():
    problem = Live()
    faults = [[3, 0], [4, 0], [5, 0], [6, 0], [7, 0], [1, 2]]
    for problem.workers in (1, 2):
        result = evaluate(problem, np.array(faults, np.int8))
        words = [Status(status).word for status in result.status]
        assert words == ["compile_error", "runtime_error", "compile_error", "timeout", "wrong_result", "ok"]
        assert result.values[5] == 3.0 and np.isinf(result.values[:5]).all()
        assert result.reasons[2] == "no" and result.reasons[4] == "it returns 1, not 2"
        assert set(result.reasons) == set(range(5))


def test_costs_are_cached_by_content_and_crashes_are_not(tmp_path):
    configs = np.array([[1, 2], [7, 0], [5, 0], [3, 0]], np.int8)
    first = Live(Cache("toy-1", "program", tmp_path)).evaluate(configs)
    broken = Live(Cache("toy-1", "program", tmp_path), "supervised_targets:useless")
    again = broken.evaluate(configs[:2])
    assert (again.values == first.values[:2]).all() and (again.status == first.status[:2]).all()
    assert again.reasons[1] == first.reasons[1]
    assert (broken.evaluate(configs[2:]).status == Status.COMPILE_ERROR).all()
    for other in (Cache("toy-2", "program", tmp_path), Cache("toy-1", "other", tmp_path)):
        assert other.get([(1, 2)]) == [None]
    assert Cache("toy-1", "program", tmp_path).get([(1, 2), (3, 0), (5, 0)]) == [(3.0, 0, ""), None, None]


class Identified(Live):
    def __init__(self, content, compiler="", target="supervised_targets:add"):
        super().__init__(target=target)
        self._identify(content, compiler)


def test_the_content_is_the_identity_and_costs_are_cached_only_for_a_named_compiler(own_cache):
    row = np.array([[1, 2]], np.int8)
    prints = [Identified(*given).fingerprint() for given in (("a",), (b"a",), ("a", "toy-1"), ("b",))]
    assert len(set(prints[:3])) == 1 and prints[3] != prints[0]
    assert not Identified("a").why_unversioned() and Live().fingerprint() not in prints
    assert Identified("a", "toy-1").evaluate(row).values[0] == 3.0
    for content, compiler, cost in (("a", "toy-1", 3.0), ("b", "toy-1", np.inf), ("a", "", np.inf)):
        assert Identified(content, compiler, "supervised_targets:useless").evaluate(row).values[0] == cost


class Telling(Live):
    tells_parts = True


@pytest.mark.slow
def test_parts_are_told_on_request_only_and_cached_beside_the_costs(tmp_path):
    configs = np.array([[1, 2], [2, 2], [7, 0], [3, 0], [1, 2]], np.int8)
    problem = Telling(Cache("toy-1", "program", tmp_path), "supervised_targets:add_with_parts")
    plain, told = evaluate(problem, configs), evaluate(problem, configs, with_parts=True)
    assert plain.parts is None and told.parts.starts.tolist() == [0, 2, 4, 4, 4, 6]
    assert np.array_equal(told.values, plain.values) and np.array_equal(told.status, plain.status)
    assert sorted(told.parts.costs[2:4].tolist()) == [2.0, 2.0]
    again = evaluate(
        Telling(Cache("toy-1", "program", tmp_path), "supervised_targets:useless"), configs[:3], with_parts=True
    )
    assert np.array_equal(again.parts.keys, told.parts.keys[:4]) and np.array_equal(again.values, told.values[:3])


def test_keys_of_parts_begin_with_a_hash_of_their_name_and_tell_costs_and_programs_apart():
    rows = [("f", b"", 1.0, 2.0), ("f", b"", 3.0, 2.0), ("f", b"", 1.0, 4.0), ("f", b"x", 1.0, 2.0)]
    rows += [("g", b"", 1.0, 2.0)]
    keys = unpacked([packed("program", rows), b""]).keys
    names = keys >> np.uint64(48)
    assert len(set(keys.tolist())) == 4 and keys[0] == keys[1]
    assert set(names[:4]) == {names[0]} and names[4] != names[0]
    assert not set(keys.tolist()) & set(unpacked([packed("other", rows)]).keys.tolist())


def test_the_cache_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("bbo_suite.supervised.problem.BYTES", 1 << 20)
    cache = Cache("toy", "c", tmp_path)
    for start in range(0, 3000, 20):
        cache.put(list(range(start, start + 20)), [(1.0, 0, "x" * 1000)] * 20)
    assert sum(file.stat().st_size for file in tmp_path.rglob("*.db")) < 3 << 19
    assert cache.get([2999]) != [None] and cache.get([0]) == [None]


class Planted:
    """An object whose pickle creates a file when it is read."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


def test_nothing_that_is_planted_in_the_cache_is_executed_or_believed(tmp_path):
    cache = Cache("toy", "c", tmp_path)
    cache.put([1, 2, 3, 4, 5], [(1.0, 0, "")] * 5)
    bad = [(pickle.dumps(Planted(tmp_path / "executed")), 0, ""), (None, 0, ""), (1.0, 99, ""), (1.0, 0, b"\xff")]
    with sqlite3.connect(tmp_path / "toy/outcomes.db") as store:
        keys = [key for (key,) in store.execute("SELECT key FROM outcomes ORDER BY rowid")]
        for key, row in zip(keys, bad, strict=False):
            store.execute("UPDATE outcomes SET cost=?, status=?, reason=? WHERE key=?", (*row, key))
    assert Cache("toy", "c", tmp_path).get([1, 2, 3, 4, 5]) == [None, None, None, None, (1.0, 0, "")]
    assert not (tmp_path / "executed").exists()


def test_a_damaged_cache_costs_one_warning_that_names_the_file(tmp_path, capsys):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy/outcomes.db").write_bytes(b"rubbish" * 1000)
    cache = Cache("toy", "c", tmp_path)
    cache.put([1], [(1.0, 0, "")])
    assert cache.get([1]) == [None]
    (line,) = capsys.readouterr().err.splitlines()
    assert "outcomes.db: file is not a database; delete it" in line


FULL = """
import resource, sys, pathlib
import numpy as np
sys.path.insert(0, {here!r})
from bbo_suite.supervised import Cache
cache = Cache("toy", "c", pathlib.Path({folder!r}))
cache.put([0], [(1.0, 0, "")])
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
cache.put(list(range(1000)), [(1.0, 0, str(i) + "x" * 2000) for i in range(1000)])
print(cache.get([0, 5]))
"""


@pytest.mark.slow
def test_a_full_disk_costs_the_cache_and_nothing_else(tmp_path, capsys):
    code = FULL.format(here=str(HERE), folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[None, None]\n" and done.stderr.count("without the cache") == 1
    (tmp_path / "file").touch()
    problem = Live(Cache("toy", "c", tmp_path / "file"))
    assert problem.evaluate(np.array([[1, 2]], np.int8)).values.tolist() == [3.0]
    assert capsys.readouterr().err.count("without the cache") == 1


# Runs


@pytest.mark.slow
def test_neither_workers_nor_killed_children_change_a_row(tmp_path):
    from supervised_targets import children

    problem, others = Live(), children()
    perform(tmp_path / "one", problem, budget=24, batch=12)
    problem.workers = 3
    perform(tmp_path / "three", problem, budget=24, batch=12)
    assert rows_of(tmp_path / "one") == rows_of(tmp_path / "three")
    done = threading.Event()

    def kill():
        while not done.wait(0.5):
            for child in children(others)[:1]:
                os.kill(child, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    perform(tmp_path / "killed", problem, budget=24, batch=12)
    done.set()
    killer.join()
    values = [[row.value for row in read_rows(tmp_path / name)] for name in ("one", "killed")]
    assert values[0] == values[1]


class Slow(Live):
    """Takes a little time per candidate, so that the time limit is reached."""

    def __init__(self):
        super().__init__(None, "supervised_targets:sleepy")
        self.default = np.array([1, 1])


class Timid(Climber):
    """Proposes only candidates that work."""

    def ask(self, n):
        return self.rng.integers(0, 3, (n, 2), dtype=np.int8)


def reason(path):
    return json.loads((path / "end.json").read_text())["reason"]


@pytest.mark.slow
def test_a_run_ends_by_time_or_by_budget_and_continues_when_there_is_more_of_it(tmp_path):
    problem = Slow()
    assert perform(tmp_path / "run", problem, Timid, budget=40, batch=4, max_seconds=0.3)
    early = rows_of(tmp_path / "run")
    assert reason(tmp_path / "run") == "time" and 4 <= len(early) < 40 and len(early) % 4 == 0
    assert perform(tmp_path / "run", problem, Timid, budget=40, batch=4, max_seconds=0.3)
    assert rows_of(tmp_path / "run") == early
    assert perform(tmp_path / "run", problem, Timid, budget=40, batch=4, max_seconds=1000)
    assert reason(tmp_path / "run") == "budget"
    perform(tmp_path / "whole", problem, Timid, budget=40, batch=4)
    assert rows_of(tmp_path / "run") == rows_of(tmp_path / "whole")
    assert perform(tmp_path / "run", problem, Timid, budget=40, batch=4, max_seconds=0.3)
    assert reason(tmp_path / "run") == "budget"


@pytest.mark.slow
def test_a_run_that_was_cut_before_its_time_was_up_is_resumed_to_the_same_rows(tmp_path):
    problem, asked = Slow(), iter([False, False, True])
    perform(tmp_path / "run", problem, Timid, budget=40, batch=4, stopped=lambda: next(asked))
    assert len(read_rows(tmp_path / "run")) == 8
    assert perform(tmp_path / "run", problem, Timid, budget=40, batch=4, max_seconds=1e-9)
    assert len(read_rows(tmp_path / "run")) == 8 and reason(tmp_path / "run") == "time"


def test_workers_and_time_limit_are_options_that_do_not_change_the_name_of_the_study(suite, toy):
    given = ("run", *toy, "--problem", "toy/small", "--strategy", "pick", "--budget", 20, "--json", "--quiet")
    done = [suite(*given, *more) for more in ((), ("--workers", 2, "--max-seconds", 1000))]
    assert [json.loads(each.out)["evaluations"] for each in done] == [20, 20]
    assert json.loads(done[0].out)["path"] == json.loads(done[1].out)["path"]
    late = suite(*given, "--max-seconds", 1e-9, "--study", "late", "--batch", 5)
    assert json.loads(late.out)["evaluations"] == 5 and json.loads(late.out)["complete"]
    assert "workers must be 1 or more" in suite(*given, "--workers", 0).err
