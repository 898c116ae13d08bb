"""What a second process is worth to a study of many runs: `pytest tests/benchmarks -k parallel -s`.

Efficiency is the time of one process over twice that of two. Where others use the machine the wall says little, so it
is also told by CPU seconds: those of the one process, over twice those of the parent and of one of its two workers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

RUNS = 200  # of 0.5 s; parent and workers spend 3 s on their starts
STUDY = """
import json, resource, sys, time
import bbo_suite
from joblib.externals.loky import get_reusable_executor

def cpu(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime

started, jobs, repeats = time.perf_counter(), int(sys.argv[1]), int(sys.argv[2])
bbo_suite.run(["annealing", "evolution"], "fusion/ssd-resnet34-infer-b32", repeats=repeats, jobs=jobs, study="s")
wall = time.perf_counter() - started
if jobs > 1:
    get_reusable_executor().shutdown()
print(json.dumps({"wall": wall, "own": cpu(resource.RUSAGE_SELF), "workers": cpu(resource.RUSAGE_CHILDREN)}))
"""


def measure(folder: Path, jobs: int, runs: int = RUNS) -> dict[str, float]:
    """Return the seconds that a study takes, of the clock and of CPUs."""
    folder.mkdir()
    command = [sys.executable, "-c", STUDY, str(jobs), str(runs // 2)]
    done = subprocess.run(command, cwd=folder, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE)
    return json.loads(done.stdout.splitlines()[-1])


def test_two_processes(tmp_path: Path) -> None:
    measure(tmp_path / "first", 1, 2)  # compiles
    one, two = measure(tmp_path / "one", 1), measure(tmp_path / "two", 2)
    by_cpu = one["own"] / (2 * two["own"] + two["workers"])
    print(f"\n{RUNS} runs: efficiency {one['wall'] / (2 * two['wall']):.0%} by the clock, {by_cpu:.0%} by CPU seconds")
    print(f"one process {one}, two {two}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
