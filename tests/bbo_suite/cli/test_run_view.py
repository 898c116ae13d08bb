import math
import os
import random
import time

import bbo_toys
import numpy as np
import pytest
from bbo_toys import FACTS, Climber, Toy, run_of

from bbo_suite import UserError
from bbo_suite.cli import run_view
from bbo_suite.cli.run_view import RunState, RunView, candidates
from bbo_suite.core.problem import Status
from bbo_suite.store.identity import read_head, write_head
from bbo_suite.store.plan import RunName
from bbo_suite.store.remeasured import Pair, PairLog
from bbo_suite.store.rows import HEADER, Row, read_rows
from bbo_suite.store.run_folder import RunFolder

NAME = RunName("toy/small", "toy", 0)


def viewed(path, budget=40):
    view = RunView(path, NAME, budget)
    view.refresh()
    return view


def numbers(view):
    return view.evaluations, view.best


@pytest.mark.parametrize("keep_all", [False, True])
def test_the_best_is_that_of_all_rows(tmp_path, keep_all):
    for seed in range(5):
        path = tmp_path / str(seed)
        bbo_toys.perform(path, seed=seed, keep_all=keep_all, budget=100)
        rows = read_rows(path)
        assert any(row.reason for row in rows)  # quotes, commas and a line break among them
        assert min(value for _, value in candidates((path / "rows.csv").read_bytes())) == min(row.value for row in rows)
        view = viewed(path)
        assert numbers(view) == (100, min(row.value for row in rows)) and view.state is RunState.DONE
        assert view.speedup == FACTS["default"] / view.best
        assert view.pace == pytest.approx(
            sum(row.strategy_seconds + row.evaluation_seconds for row in rows) / 100, rel=1e-4
        )


@pytest.mark.parametrize("seed", range(4))
def test_a_log_read_as_it_grows_byte_by_byte_is_the_log(tmp_path, seed):
    bbo_toys.perform(tmp_path / "whole", budget=60, keep_all=seed % 2 == 0)
    data, rng = (tmp_path / "whole" / "rows.csv").read_bytes(), random.Random(seed)
    (tmp_path / "run").mkdir()
    view = RunView(tmp_path / "run", NAME, 60)
    for cut in [0, *sorted(rng.sample(range(len(data)), 10)), len(data)]:
        (tmp_path / "run" / "rows.csv").write_bytes(data[:cut])
        view.refresh()
        rows = read_rows(tmp_path / "run")
        assert numbers(view) == (len(rows), min((row.value for row in rows), default=math.inf))
        assert numbers(viewed(tmp_path / "run")) == numbers(view)


def test_a_run_that_was_written_in_the_future_is_silent_a_minute_after_the_first_look(tmp_path, monkeypatch):
    """As after a clock was set back, or on a file system whose clock is ahead."""
    bbo_toys.perform(tmp_path / "run", stopped=iter([False, True]).__next__)
    future = time.time() + 4000
    os.utime(tmp_path / "run" / "rows.csv", (future, future))
    view, now = viewed(tmp_path / "run"), time.monotonic()
    assert view.state is RunState.RUNNING and view.silence < 30
    monkeypatch.setattr(time, "monotonic", lambda: now + 61)
    view.refresh()
    assert view.state is RunState.SILENT and view.silence == pytest.approx(61, abs=5)


def test_states(tmp_path, monkeypatch):
    path = tmp_path / "run"
    assert viewed(path).state is RunState.WAITING
    problem, run = Toy(), run_of(Toy(), Climber)
    with RunFolder(path, run.identity(), FACTS):
        assert viewed(path).state is RunState.RUNNING  # at its first batch
    bbo_toys.perform(path, stopped=iter([False, False, True]).__next__)
    view = viewed(path)
    assert view.state is RunState.RUNNING and view.evaluations == 14
    past = time.time() - 4000
    os.utime(path / "rows.csv", (past, past))
    assert viewed(path).state is RunState.SILENT and viewed(path).silence == pytest.approx(4000, abs=60)
    bbo_toys.perform(path, stopped=iter([False] * 3 + [True]).__next__)
    os.utime(path / "rows.csv", (past, past))  # a file system whose clock is behind
    view.refresh()
    assert view.evaluations == 21 and view.state is RunState.RUNNING
    problem.evaluate = lambda configs: 1 / 0
    with pytest.raises(UserError):
        bbo_toys.perform(path, problem)
    view.refresh()
    assert view.state is RunState.FAILED and viewed(path).state is RunState.FAILED
    bbo_toys.perform(path, stopped=iter([False] * 4 + [True]).__next__)  # a new attempt
    assert viewed(path).state is RunState.RUNNING
    bbo_toys.perform(path)
    view.refresh()
    assert view.state is viewed(path).state is RunState.DONE
    assert numbers(view) == numbers(viewed(path)) == (40, min(row.value for row in read_rows(path)))


@pytest.mark.parametrize("best", ['"low"', "0.001", "null", "[1]", "1e999"])
def test_the_rows_are_believed_and_not_what_the_end_says(tmp_path, best):
    bbo_toys.perform(tmp_path)
    whole = viewed(tmp_path)
    text = f'{{"reason": "budget", "evaluations": 40, "best": {best}, "seconds": {best}}}'
    (tmp_path / "end.json").write_text(text)
    other = viewed(tmp_path)
    assert other.state is RunState.DONE and numbers(other) == numbers(whole) and other.pace == whole.pace


def test_the_best_of_an_imported_run_whose_rows_hold_no_candidates(tmp_path):
    bbo_toys.perform(tmp_path)
    head = read_head(tmp_path) | {"imported": {"source": "a.csv"}}
    write_head(tmp_path, head)
    rows = [Row(i, "", 9.0 - i, Status.OK, 0.0, 0.0) for i in range(1, 5)]
    (tmp_path / "rows.csv").write_text(HEADER + "".join(row.line() for row in rows))
    assert numbers(viewed(tmp_path)) == (4, 5.0)


@pytest.mark.parametrize("file", ["run.json", "end.json", "rows.csv"])
def test_no_damage_is_an_error(tmp_path, file):
    bbo_toys.perform(tmp_path)
    whole, rng = (tmp_path / file).read_bytes(), np.random.default_rng(0)
    for damage in (b"", b"\n", b"{", b"[]", b"\0" * 50, b"\n,,,\n,,,00000000\nx,y\n", rng.bytes(2000), whole[7:]):
        (tmp_path / file).write_bytes(damage)
        view = viewed(tmp_path)
        view.refresh()
        assert view.state in RunState and (view.speedup is None or view.speedup > 0)


def test_the_pace_is_that_of_all_rows_not_of_the_last(tmp_path):
    rows = [Row(i, "0" * 16, 2.0, Status.OK, 0.1 * (i < 3000), 0.2, "x" * 300 if i % 9 else "") for i in range(1, 5001)]
    (tmp_path / "rows.csv").write_text(HEADER + "".join(row.line() for row in rows))
    assert viewed(tmp_path).pace == pytest.approx(0.26, rel=0.01)


def test_a_run_that_measures_its_best_candidates_again_is_not_silent(tmp_path):
    path, old = tmp_path / "run", time.time() - 1000
    bbo_toys.perform(path)
    (path / "end.json").unlink()
    os.utime(path / "rows.csv", (old, old))
    view = viewed(path)
    assert (view.state, view.pairs) == (RunState.SILENT, 0)
    log = PairLog(path)
    for number in (1, 2):
        log.append([Pair(number, 3, 2.0, 1.0, "0").line()])
    view.refresh()
    assert (view.state, view.pairs) == (RunState.RUNNING, 2)


def test_only_what_was_added_is_read(tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr(run_view, "candidates", lambda data, kept: read.append(len(data)) or candidates(data, kept))
    bbo_toys.perform(tmp_path, stopped=iter([False, True]).__next__)
    view = viewed(tmp_path)
    first = (tmp_path / "rows.csv").stat().st_size
    bbo_toys.perform(tmp_path, stopped=iter([False, False, True]).__next__)
    view.refresh()
    view.refresh()
    assert read == [first, (tmp_path / "rows.csv").stat().st_size - first]
    bbo_toys.perform(tmp_path)
    view.refresh()
    assert view.state is RunState.DONE and sum(read) == (tmp_path / "rows.csv").stat().st_size
