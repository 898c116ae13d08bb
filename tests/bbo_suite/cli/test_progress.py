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
from bbo_suite.cli.watch import seconds_left
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
