"""The state of one run as its files show it, and the progress of the runs of a command."""

import itertools
import math
import os
import pty
import random
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import bbo_toys
import numpy as np
import pytest
from bbo_toys import FACTS, Climber, Toy, run_of

from bbo_suite import UserError
from bbo_suite.cli import progress, run_view
from bbo_suite.cli.progress import WatchedRun, display
from bbo_suite.cli.run_view import RunState, RunView, candidates
from bbo_suite.cli.watch import seconds_left
from bbo_suite.core.problem import Status
from bbo_suite.runs.study_plan import PlannedRun
from bbo_suite.store.identity import Run, read_head, write_head
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


def planned(path, strategy="random", seed=0, budget=1000):
    run = Run("toy/small", "x", strategy, {}, seed, budget, 100)
    return PlannedRun(run, path / f"{strategy}-{seed}", {"default": 10.0})


def write(plan, start, values, torn=""):
    plan.path.mkdir(exist_ok=True)
    file = plan.path / "rows.csv"
    with file.open("a") as rows:
        rows.write("" if file.stat().st_size else HEADER)
        for number, value in enumerate(values, start=start):
            status = Status.OK if value < float("inf") else Status.TIMEOUT
            rows.write(Row(number, "0" * 16, value, status, 0.1, 0.1, "a,b", "why, so").line())
        rows.write(torn)


def test_a_run_is_read_as_it_grows(tmp_path):
    watched = WatchedRun(planned(tmp_path))
    assert (watched.evaluations, watched.speedup, watched.active) == (0, None, False)
    write(watched.planned, 1, [20.0, float("inf"), 8.0], torn="4,0000")
    watched.refresh()
    assert (watched.evaluations, watched.speedup, watched.active) == (3, 1.25, True)
    (watched.planned.path / "end.json").write_text('{"evaluations": 3}')
    watched.refresh()
    assert not watched.active


def test_a_resumed_run_is_active_once_it_grows(tmp_path):
    plan = planned(tmp_path)
    write(plan, 1, [5.0] * 500)
    watched = WatchedRun(plan)
    assert (watched.already, watched.active) == (500, False)
    write(plan, 501, [4.0] * 100)
    watched.refresh()
    assert watched.active


def left(runs):
    active = [run for run in runs if run.active]
    return seconds_left(runs, active, len(active))


def test_the_time_left_is_that_of_all_runs(tmp_path):
    runs = [WatchedRun(planned(tmp_path, seed=seed)) for seed in range(4)]
    assert left(runs) is None  # unknown yet
    write(runs[0].planned, 1, [5.0] * 1000)
    (runs[0].planned.path / "end.json").write_text('{"evaluations": 1000}')
    write(runs[1].planned, 1, [5.0] * 500)
    write(runs[2].planned, 1, [5.0] * 500)
    for run in runs:
        run.refresh()
    # two runs at a time, 0.2 s an evaluation: 500 + 500 + 1000 evaluations are left
    assert left(runs) == pytest.approx(200)
    runs[1].over = runs[1].failed = True
    assert left(runs) == pytest.approx(300)


def test_plain_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(progress, "PLAIN_SECONDS", 0.02)
    plan = [planned(tmp_path), planned(tmp_path, "evolution")]
    with display(quiet=False).running(plan) as over:
        write(plan[0], 1, [5.0] * 250)
        time.sleep(0.15)
        over(plan[0].path)
        time.sleep(0.05)
        capsys.readouterr()
        write(plan[1], 1, [2.0] * 1000)
        time.sleep(0.15)
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == "" and len(lines) > 1
    total = r"1/2 runs(, [\d,]+ (s|min) left for all)?"
    pattern = total + r"|evolution on toy/small, seed 0: [\d,]+/1,000 evaluations, best 5.000x"
    assert all(re.fullmatch(pattern, line) for line in lines), lines


def test_quiet_says_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(progress, "PLAIN_SECONDS", 0.01)
    plan = [planned(tmp_path)]
    with display(True).preparing(["a/b"]), display(True).running(plan) as over:
        write(plan[0], 1, [5.0])
        time.sleep(0.05)
        over(plan[0].path)
    assert capsys.readouterr() == ("", "")


def test_display_ends_when_the_work_raises(tmp_path):
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError), display(quiet=False).running([planned(tmp_path)]):
        raise ZeroDivisionError
    assert threading.active_count() == before


@pytest.mark.slow
@pytest.mark.parametrize("columns", [40, 120])
def test_live_lines_on_a_terminal(tmp_path, toy, columns):
    plugin = tmp_path / "[red]a.py"
    plugin.write_text(Path(toy[3]).read_text())
    command = [sys.executable, "-m", "bbo_suite", "run", *map(str, toy[:2]), "--plugin", str(plugin), "--jobs", "1"]
    mine, theirs = pty.openpty()
    environment = os.environ | {"TOY_SECONDS": "0.2", "COLUMNS": str(columns), "TERM": "xterm"}
    process = subprocess.Popen(
        [*command, "--budget", "800", "--json"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    shown = b"".join(itertools.takewhile(bool, iter(lambda: read(mine), None)))
    out, _ = process.communicate(timeout=30)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    lines = [line.strip() for line in re.split(r"[\r\n]+", text)]
    assert process.returncode == 0 and out.count(b"\n") == 1
    assert any(re.search(r"[34]00/800  \d\.\d{3}x  ", line) for line in lines), lines
    assert any(re.search(r"0/1 runs, \d s left for all", line) for line in lines), lines
    assert "\x1b[?25h" in shown.decode()  # the cursor is back
    if columns == 120:
        assert any("[red]a on toy/small, seed 0" in line for line in lines)
    assert max(len(line) for line in lines if "evaluating" not in line) <= columns


def read(file):
    try:
        return os.read(file, 4096)
    except OSError:  # Linux: the other end is closed
        return b""
