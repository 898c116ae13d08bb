import itertools
import os
import pty
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bbo_suite.cli import progress
from bbo_suite.cli.progress import WatchedRun, display
from bbo_suite.core.problem import Status
from bbo_suite.runs.study_plan import PlannedRun
from bbo_suite.store.identity import Run
from bbo_suite.store.rows import HEADER, Row


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


@pytest.fixture
def clock(monkeypatch):
    """Return a list whose last number is the time."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[-1])
    return now


def test_a_run_is_read_as_it_grows(tmp_path, clock):
    watched = WatchedRun(planned(tmp_path))
    assert (watched.evaluations, watched.speedup, watched.active, watched.seconds_left) == (0, None, False, None)
    write(watched.planned, 1, [])
    watched.refresh()
    clock.append(102.0)
    write(watched.planned, 1, [20.0, float("inf"), 8.0], torn="4,0000")
    watched.refresh()
    assert (watched.evaluations, watched.speedup, watched.active) == (3, 1.25, True)
    assert watched.seconds_left == 0.0  # the pace is measured from the last look at which nothing had come
    clock.append(105.0)
    assert watched.seconds_left == pytest.approx(3 / 3 * 997)
    (watched.planned.path / "end.json").write_text('{"evaluations": 3}')
    watched.refresh()
    assert not watched.active


def test_pace_of_a_resumed_run_starts_at_its_turn(tmp_path, clock):
    plan = planned(tmp_path)
    write(plan, 1, [5.0] * 500)
    watched = WatchedRun(plan)
    assert (watched.already, watched.active) == (500, False)
    clock.append(10_000.0)  # other runs come first
    watched.refresh()
    write(plan, 501, [4.0] * 100)
    watched.refresh()
    clock.append(10_010.0)
    assert watched.active
    assert watched.seconds_left == pytest.approx(10 / 100 * 400)


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
    pattern = r"evolution on toy/small, seed 0: [\d,]+/1,000 evaluations, best 5.000x, [\d,]+ s left"
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
    assert any(re.search(r"[34]00/800  \d\.\d{3}x  \d s left  ", line) for line in lines), lines
    assert any("0/1 runs" in line for line in lines)
    assert "\x1b[?25h" in shown.decode()  # the cursor is back
    if columns == 120:
        assert any("[red]a on toy/small, seed 0" in line for line in lines)
    assert max(len(line) for line in lines if "evaluating" not in line) <= columns


def read(file):
    try:
        return os.read(file, 4096)
    except OSError:  # Linux: the other end is closed
        return b""
