"""`watch`: the state of one run as its files show it, and the progress of all runs."""

import itertools
import json
import math
import os
import pty
import random
import re
import select
import signal
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
from bbo_suite.cli.watch import StudyView, page, seconds_left
from bbo_suite.cli.watch import time as clock_of
from bbo_suite.core.problem import Status
from bbo_suite.runs.study_plan import PlannedRun
from bbo_suite.store.folders import mark_stopped
from bbo_suite.store.identity import Run, read_head, write_head
from bbo_suite.store.plan import RunName, add_planned
from bbo_suite.store.remeasured import Pair, PairLog
from bbo_suite.store.rows import HEADER, Row, read_rows
from bbo_suite.store.run_folder import RunFolder

FIRST = [RunName("toy/small", "pick", seed) for seed in range(3)]


def write(study, name, count, pace=0.1, ended=False):
    """Append `count` rows to a run, as the suite does."""
    path = study / name.folder
    path.mkdir(exist_ok=True)
    run = Run(name.problem, "f0", name.strategy, {}, name.seed, budget=100, batch=10)
    write_head(path, run.identity() | {"default": 4.0, "unit": "seconds", "level": "costs"})
    log = path / "rows.csv"
    log.touch()
    start = log.read_text().count("\n") or 1
    rows = (Row(i, "0" * 16, 2.0, Status.OK, pace, pace, "ab" if i == 1 else "") for i in range(start, start + count))
    with log.open("a") as file:
        file.write("".join(["" if start > 1 else HEADER, *(row.line() for row in rows)]))
    if ended:
        (path / "end.json").write_text(json.dumps({"reason": "budget", "evaluations": start - 1 + count}))


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "results" / "s"
    path.mkdir(parents=True)
    (path / "study.json").write_text('{"format": 1, "budget": 100, "batch": 10}')
    add_planned(path, FIRST)
    return path


@pytest.fixture
def now(monkeypatch):
    times = [1000.0]
    monkeypatch.setattr(clock_of, "monotonic", lambda: times[-1])
    return times


def view_of(study):
    view = StudyView(study.name, study.parent)
    view.refresh()
    return view


def test_pace_and_time_left(study, now):
    view = view_of(study)
    assert (view.rate, view.seconds_left) == (0, None)  # no run has started
    write(study, FIRST[0], 40)
    view = view_of(study)
    assert view.rate == pytest.approx(1 / 0.2)  # from the seconds stored with the rows
    assert view.seconds_left == pytest.approx((60 + 100 + 100) * 0.2)
    write(study, FIRST[1], 10)  # two runs at a time, each slower
    now.append(now[-1] + 10)
    write(study, FIRST[0], 25)
    view.refresh()
    assert view.rate == pytest.approx(35 / 10)
    assert view.seconds_left == pytest.approx((35 + 90 + 100) * 0.2 / 0.7)
    write(study, FIRST[0], 35, ended=True)
    write(study, FIRST[1], 90, ended=True)
    write(study, FIRST[2], 100, ended=True)
    view.refresh()
    assert view.over


def test_what_is_to_come_takes_as_long_as_its_like(study, now):
    slow = [RunName("toy/small", "mbo", 0), RunName("toy/large", "mbo", 0), RunName("toy/large", "pick", 0)]
    add_planned(study, slow)
    for name in FIRST:
        write(study, name, 100, pace=0.5, ended=True)
    write(study, slow[0], 50, pace=5.0)
    write(study, slow[2], 50, pace=0.05)
    assert view_of(study).seconds_left == pytest.approx((50 * 10 + 100 * 10 + 50 * 0.1) / 2)


def test_the_last_run_is_what_there_is_to_wait_for(study, now):
    write(study, FIRST[0], 90)
    write(study, FIRST[1], 99)
    write(study, FIRST[2], 10)
    assert view_of(study).seconds_left == pytest.approx(90 * 0.2)


def test_a_study_grows_while_it_is_watched(study):
    view = view_of(study)
    for name in FIRST:
        write(study, name, 100, ended=True)
    view.refresh()
    assert view.over and len(view.runs) == 3
    add_planned(study, [RunName("toy/large", "pick", 0)])
    view.refresh()
    assert not view.over and [run.name.problem for run in view.runs] == ["toy/small"] * 3 + ["toy/large"]


def test_a_study_that_is_being_prepared_is_not_over(suite, study):
    (study / "planned.jsonl").unlink()
    assert not view_of(study).over
    assert suite("watch", "s").out == "s: no run has started yet; the problems are being loaded\n"


def test_half_of_a_line_and_empty_folders(study):
    write(study, FIRST[0], 10)
    with (study / FIRST[0].folder / "rows.csv").open("a") as log:
        log.write("11,0000")
    with (study / "planned.jsonl").open("a") as plan:
        plan.write('{"problem": "to')
    (study / FIRST[1].folder).mkdir()
    assert [run.evaluations for run in view_of(study).runs] == [10, 0, 0]


def test_printed_once(suite, study):
    write(study, FIRST[0], 100, ended=True)
    write(study, FIRST[1], 10)
    os.utime(study / FIRST[1].folder / "rows.csv", (time.time() - 600,) * 2)
    done = suite("watch", "s")
    assert done.code == 0 and done.err == "" and "\x1b" not in done.out
    assert "s: 3 runs: 1 done, 1 silent, 1 waiting" in done.out
    assert "110/300 evaluations (37%)" in done.out
    assert re.search(r"toy/small +│ +1/3 +│ +2\.0000", done.out)
    assert "pick on toy/small, seed 1: 10/100, best 2.0000, no new rows for 10 min" in done.out


def test_what_ctrl_c_stopped_is_stopped(suite, study):
    write(study, FIRST[0], 100, ended=True)
    write(study, FIRST[1], 10)
    for name in FIRST:
        mark_stopped(study / name.folder)
    view = view_of(study)
    assert [run.state.value for run in view.runs] == ["done", "stopped", "waiting"]
    assert view.stopped and view.over
    done = suite("watch", "s")
    assert "s: 3 runs: 1 done, 1 stopped, 1 waiting" in done.out
    assert "110/300 evaluations (37%); stopped: run the same command to resume" in done.out
    write(study, FIRST[2], 10)  # on another machine
    assert not view_of(study).over


def test_ctrl_c_marks_runs_as_stopped_until_they_go_on(suite, toy, monkeypatch):
    command = ("run", *toy, "--budget", 300, "--study", "s", "--quiet", "--json")
    with monkeypatch.context() as patch:
        real, batches = RunFolder.append, []

        def append(folder, rows):
            real(folder, rows)
            batches.append(rows)
            if len(batches) == 2:
                os.kill(os.getpid(), signal.SIGINT)

        patch.setattr(RunFolder, "append", append)
        done = suite(*command)
    assert done.code == 130
    assert "1 stopped" in suite("watch", "s").out
    assert suite(*command).code == 0
    assert "1 done" in suite("watch", "s").out and "stopped" not in suite("watch", "s").out


@pytest.mark.slow
@pytest.mark.parametrize("way", [pytest.param("done", marks=pytest.mark.slow), "interrupted"])
def test_on_a_terminal_it_ends_when_all_is_done_or_quietly(study, tmp_path, way):
    mine, theirs = pty.openpty()
    command = [sys.executable, "-m", "bbo_suite", "watch", "s"]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    heard = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731 - shells switch it off in the background
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=theirs, stderr=theirs, preexec_fn=heard)
    os.close(theirs)
    shown = until(mine, b"3 waiting")
    if way == "done":
        for name in FIRST:
            write(study, name, 100, ended=True)
        shown += until(mine, b"3 done")
    else:
        process.send_signal(signal.SIGINT)
    shown += until(mine, None)
    assert process.wait(timeout=20) == 0
    assert (b"stopped watching; the runs are not affected" in shown) == (way == "interrupted")
    assert b"\x1b[?25h" in shown and b"Traceback" not in shown and b"Abort" not in shown


def until(terminal, wanted):
    """Return the terminal's output up to the wanted text, or to the end."""
    shown, ends = b"", time.monotonic() + 30
    while (wanted is None or wanted not in shown) and time.monotonic() < ends:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            shown += os.read(terminal, 4096)
        except OSError:  # Linux: the other end is closed
            break
    assert wanted is None or wanted in shown, shown
    return shown


@pytest.mark.slow
def test_a_page_reloads_itself_until_all_runs_are_done(study):
    assert "http-equiv" in (first := page(view_of(study))) and "<svg" not in first
    write(study, FIRST[0], 5)
    running = page(view_of(study))
    assert "http-equiv" in running and "toy/small" in running and running.count("<svg") == 1
    for name in FIRST:
        write(study, name, 5, ended=True)
    assert "http-equiv" not in page(view_of(study))


def test_the_browser_is_opened_once_and_the_last_page_stays(study, suite, monkeypatch, tmp_path):
    opened = []
    monkeypatch.setattr("tempfile.mkdtemp", lambda prefix: str(tmp_path))
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    for name in FIRST:
        write(study, name, 5, ended=True)
    done = suite("watch", "s", "--browser", "--results", study.parent)
    assert opened == [f"file://{done.out.split(': ')[0]}"] and "open in the browser" in done.out
    assert "3 done" in Path(opened[0].removeprefix("file://")).read_text()
    refused = suite("watch", "s", "--browser", "--once", "--results", study.parent)
    assert refused.code and "leave out --once" in refused.err


NAME = RunName("toy/small", "toy", 0)


def viewed(path, budget=40):
    view = RunView(path, NAME, budget)
    view.refresh()
    return view


def numbers(view):
    return view.evaluations, view.best


@pytest.mark.slow
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


def append_rows(plan, start, values, torn=""):
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
    append_rows(watched.planned, 1, [20.0, float("inf"), 8.0], torn="4,0000")
    watched.refresh()
    assert (watched.evaluations, watched.speedup, watched.active) == (3, 1.25, True)
    (watched.planned.path / "end.json").write_text('{"evaluations": 3}')
    watched.refresh()
    assert not watched.active


def test_a_resumed_run_is_active_once_it_grows(tmp_path):
    plan = planned(tmp_path)
    append_rows(plan, 1, [5.0] * 500)
    watched = WatchedRun(plan)
    assert (watched.already, watched.active) == (500, False)
    append_rows(plan, 501, [4.0] * 100)
    watched.refresh()
    assert watched.active


def left(runs):
    active = [run for run in runs if run.active]
    return seconds_left(runs, active, len(active))


def test_the_time_left_is_that_of_all_runs(tmp_path):
    runs = [WatchedRun(planned(tmp_path, seed=seed)) for seed in range(4)]
    assert left(runs) is None  # unknown yet
    append_rows(runs[0].planned, 1, [5.0] * 1000)
    (runs[0].planned.path / "end.json").write_text('{"evaluations": 1000}')
    append_rows(runs[1].planned, 1, [5.0] * 500)
    append_rows(runs[2].planned, 1, [5.0] * 500)
    for run in runs:
        run.refresh()
    # two runs at a time, 0.2 s an evaluation: 500 + 500 + 1000 evaluations are left
    assert left(runs) == pytest.approx(200)
    runs[1].over = runs[1].failed = True
    assert left(runs) == pytest.approx(300)


@pytest.mark.slow
def test_plain_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(progress, "PLAIN_SECONDS", 0.02)
    plan = [planned(tmp_path), planned(tmp_path, "evolution")]
    with display(quiet=False).running(plan) as over:
        append_rows(plan[0], 1, [5.0] * 250)
        time.sleep(0.15)
        over(plan[0].path)
        time.sleep(0.05)
        capsys.readouterr()
        append_rows(plan[1], 1, [2.0] * 1000)
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
        append_rows(plan[0], 1, [5.0])
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
