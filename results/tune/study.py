"""Measures what `tune` and `confirm` promise: python results/tune/study.py aa|gains|same|sizes FOLDER.

Each appends rows to a table in the folder as they are made. Nothing here was used to choose a setting.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bbo_suite
from bbo_problems.programs_c import large_names, names, source
from bbo_suite.verify.remeasure import DEFAULT, confirm

HERE = Path(__file__).parent
TRIALS = 100
"""Of equal programs, with one and with two busy cores."""
PROGRAMS = (*names()[::3], *large_names()[::2])
"""Every third small program and every second large one."""
AGAIN, RUNS = ("base64", "matrix"), 5
_SECONDS = 6.0
"""Limit of a comparison of equal programs."""
_LEAST = 0.02
"""Seconds of processor time that a run takes, at least."""


def command(name: str, flags: str, repeats: int) -> str:
    """Return the command that builds a program."""
    defined = f"-DPROGRAM='\"{source(name)}\"' -DREPEATS={repeats}"
    return f"gcc -march=native {flags} {defined} -o {{out}} {HERE / 'main.c'}"


def repeats(name: str) -> int:
    """Return how often a program runs, so that it takes long enough."""
    for count in (2**power for power in range(4, 16)):
        with tempfile.TemporaryDirectory() as folder:
            build = command(name, "-O3 -DSALT='\"\"'", count).replace("{out}", f"{folder}/program")
            subprocess.run(build, shell=True, check=True, capture_output=True)
            before = os.times()
            subprocess.run(f"{folder}/program", check=True, capture_output=True)
            after = os.times()
            if after.children_user + after.children_system - before.children_user - before.children_system > _LEAST:
                return count
    return count


@contextmanager
def busy(cores: int) -> Iterator[None]:
    """Keep cores busy with work of another process each."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(cores)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def append(file: Path, row: dict[str, Any]) -> None:
    """Add a row to a table, which gets its header with the first."""
    is_new = not file.exists()
    with file.open("a", newline="") as opened:
        writer = csv.DictWriter(opened, [*row])
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def aa(folder: Path) -> None:
    """Compare programs of the same speed, whose code differs by bytes that nothing reads."""
    count = repeats("lexer") // 4
    build = command("lexer", "-O2 {flags}", count)
    values = [f"-DSALT='\"{number:04}\"'" for number in range(2 * TRIALS + 1)]
    text = f"[build]\ncommand = {json.dumps(build)}\n[run]\ncommand = '{{out}}'\n[space]\nsalt = {json.dumps(values)}\n"
    (folder / "aa.toml").write_text(text)
    problem = bbo_suite.problem(f"command:{folder / 'aa.toml'}")
    for trial in range(2 * TRIALS):
        cores = 1 + trial % 2
        with busy(cores):
            (found,) = confirm(problem, problem.default_row() + 1 + trial, _SECONDS, (DEFAULT,))
        shown = {key: f"{getattr(found.ratio, key):.5f}" for key in ("value", "low", "high")}
        append(folder / "aa.csv", {"busy": cores, "pairs": found.ratio.pairs, **shown, "load": os.getloadavg()[0]})


def tune(place: Path, build: str, *words: str) -> dict[str, Any]:
    """Tune a build in a folder and return what the command tells, or its error."""
    place.mkdir(exist_ok=True)
    line = [sys.executable, "-m", "bbo_suite", "tune", build, "--run", "{out}", "--quiet", "--json", *words]
    done = subprocess.run(line, cwd=place, capture_output=True, text=True)
    return {"error": done.stderr.strip().splitlines()[-1]} if done.returncode else json.loads(done.stdout)


def tuned(folder: Path, name: str, budget: int, study: str) -> dict[str, Any]:
    """Tune a program by time and return what came of it."""
    started = time.monotonic()
    build = command(name, "{flags} -DSALT='\"\"'", repeats(name))
    place = folder / "work"
    found = tune(place, build, "--budget", str(budget), "--study", study)
    if "error" in found:
        return {"program": name, "study": study, **found}
    verdicts = {each["against"]: each for each in found["verdicts"]}
    last = verdicts.get("-O3") or verdicts.get("the default") or {"value": 1.0, "low": 1.0, "high": 1.0, "pairs": 0}
    shown = {key: f"{last[key]:.5f}" for key in ("value", "low", "high")}
    text = json.loads((place / "results" / study / "recommended.json").read_text())["text"]
    flags = text.partition("-march=native ")[2].partition(" -DSALT")[0]
    counts = {key: found["candidates"].get(key, 0) for key in ("ok", "same code", "wrong_result")}
    about = {"program": name, "study": study, "budget": budget, **shown, "pairs": last["pairs"], **counts}
    return {**about, "seconds": round(time.monotonic() - started), "flags": flags, "load": os.getloadavg()[0]}


def gains(folder: Path) -> None:
    """Tune each program once, and compare with -O3 -march=native."""
    for name in PROGRAMS:
        append(folder / "gains.csv", tuned(folder, name, 100, f"gain-{name}"))


def same(folder: Path) -> None:
    """Tune programs again and again, with one busy core beside."""
    for run in range(RUNS):
        for name in AGAIN:
            with busy(1):
                append(folder / "same.csv", tuned(folder, name, 40, f"same-{name}-{run}"))


def sizes(folder: Path) -> None:
    """Tune the size of each program, by our choice of a strategy, at random and by OpenTuner."""
    for name in PROGRAMS:
        build = command(name, "{flags} -DSALT='\"\"'", 1)
        row: dict[str, Any] = {"program": name}
        for strategy in ("evolution", "random", "opentuner:AUCBanditMetaTechniqueA"):
            short = strategy.partition(":")[0]
            words = ("--goal", "size", "--strategy", strategy, "--budget", "200", "--study", f"size-{name}-{short}")
            found = tune(folder / "work", build, *words)
            row[short] = int(found["value"])
        for level in ("-Oz -flto", "-Oz", "-Os", "-O2", "-O3"):  # the default is one of them
            row[level] = round(found["default"] / found["baselines"].get(level, 1))
        append(folder / "sizes.csv", row)


if __name__ == "__main__":
    {"aa": aa, "gains": gains, "same": same, "sizes": sizes}[sys.argv[1]](Path(sys.argv[2]).absolute())
