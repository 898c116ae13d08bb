import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bbo_suite.cli.watch import StudyView, page
from bbo_suite.cli.watch import time as clock_of
from bbo_suite.core.problem import Status
from bbo_suite.store.folders import mark_stopped
from bbo_suite.store.identity import Run, write_head
from bbo_suite.store.plan import RunName, add_planned
from bbo_suite.store.rows import HEADER, Row
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
