"""A strategy that ends its process: an error of that run, and the other runs are made."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOY = Path(__file__).parents[1] / "plugins" / "toy.py"
ENDS = """
import os, signal
from bbo_suite import Strategy

class Ends(Strategy):
    def ask(self, n):
        return self.task.space.sample(n, self.rng)

    def tell(self, configs, values):
        {how}
"""


def run(folder, *strategies, jobs=1):
    chosen = [part for name in strategies for part in ("--plugin", f"{name}.py", "--strategy", name)]
    command = [sys.executable, "-m", "bbo_suite", "run", "--plugin", str(TOY), *chosen, "--strategy", "random"]
    command += [
        "--problem",
        "toy/small",
        "--budget",
        "20",
        "--batch",
        "5",
        "--jobs",
        str(jobs),
        "--study",
        "s",
        "--json",
    ]
    return subprocess.run(command, cwd=folder, env=os.environ, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    "ends",
    [
        {"aborts": ("os.abort()", "by SIGABRT"), "leaves": ("os._exit(0)", "with exit code 0")},
        pytest.param({"dies": ("os.kill(os.getpid(), signal.SIGKILL)", "by SIGKILL")}, marks=pytest.mark.slow),
    ],
)
def test_the_run_that_ended_its_process_is_an_error_and_the_others_are_made(tmp_path, ends):
    for name, (how, _) in ends.items():
        (tmp_path / f"{name}.py").write_text(ENDS.format(how=how))
    done = run(tmp_path, *ends)
    (made,) = map(json.loads, done.stdout.splitlines())
    assert (done.returncode, made["strategy"], made["complete"]) == (1, "random", True)
    for name, (_, words) in ends.items():
        folder = tmp_path / f"results/s/toy--small__{name}__0"
        assert f"error: {name} on toy/small, seed 0: its process ended {words}" in done.stderr
        assert f"its process ended {words}" in (folder / "error.txt").read_text()
        assert len((folder / "rows.csv").read_text().splitlines()) == 6 and not (folder / "end.json").exists()


@pytest.mark.slow
def test_of_several_workers_the_run_that_ended_its_own_is_named_and_the_others_are_made(tmp_path):
    (tmp_path / "dies.py").write_text(ENDS.format(how="os.kill(os.getpid(), signal.SIGKILL)"))
    (tmp_path / "stays.py").write_text(ENDS.format(how="pass"))
    done = run(tmp_path, "dies", "stays", jobs=2)
    made = {line["strategy"]: line["complete"] for line in map(json.loads, done.stdout.splitlines())}
    assert (done.returncode, made) == (1, {"stays": True, "random": True})
    assert "error: dies on toy/small, seed 0: its process ended" in done.stderr and done.stderr.count("error:") == 1
    folder = tmp_path / "results/s/toy--small__dies__0"
    assert "its process ended" in (folder / "error.txt").read_text()
