"""The same numbers wherever jobs are carried out, also when a worker dies."""

import importlib.util
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.slow
needs_dask = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="dask is not installed")
POLICIES = [word for name in ("weight", "search", "transfer", "graybox-model", "oracle") for word in ("--policy", name)]
GIVEN = [*POLICIES, "--days", "10", "--option", "release=5", "--budget", "40000", "--json", "--quiet"]


def fleet(folder, study, *more):
    command = [sys.executable, "-m", "bbo_suite", "fleet", *GIVEN, "--study", study, *more]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


def test_processes(tmp_path):
    assert ended(fleet(tmp_path, "one")) == ended(fleet(tmp_path, "two", "--jobs", "2"))


class Dask:
    def __init__(self, folder):
        self.folder, self.processes = folder, []
        self.start("scheduler", "--port", "0", "--no-dashboard")
        self.wait(lambda: (folder / "scheduler.json").exists())

    def start(self, kind, *arguments):
        file = ["--scheduler-file", str(self.folder / "scheduler.json")]
        command = [sys.executable, "-m", "dask", kind, *file, *arguments]
        with (self.folder / f"{len(self.processes)}.log").open("w") as log:
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder))
        return self.processes[-1]

    def worker(self, pool):
        return self.start("worker", "--nthreads", "1", "--no-nanny", "--resources", f"{pool}=1")

    def wait(self, true):
        for _ in range(300):
            if true():
                return
            time.sleep(0.1)
        raise AssertionError("it took too long")

    @property
    def address(self):
        import json

        return json.loads((self.folder / "scheduler.json").read_text())["address"]


@pytest.fixture
def dask(tmp_path):
    (tmp_path / "dask").mkdir()
    made = Dask(tmp_path / "dask")
    yield made
    for process in made.processes:
        process.kill()


@needs_dask
def test_two_pools_of_which_workers_die(tmp_path, dask):
    compiling, chip, second = dask.worker("COMPILE"), dask.worker("CHIP"), dask.worker("CHIP")
    for number in (1, 2, 3):
        dask.wait(lambda number=number: "Registered" in (dask.folder / f"{number}.log").read_text())
    process = fleet(tmp_path, "cut", "--cluster", dask.address)
    dask.wait(lambda: list((tmp_path / "results" / "cut").rglob("results.log")))
    chip.kill()
    dask.worker("COMPILE")
    dask.wait(lambda: "Registered" in (dask.folder / "4.log").read_text() or process.poll() is not None)
    compiling.kill()
    assert ended(process) == ended(fleet(tmp_path, "whole"))
    assert second.poll() is None


@needs_dask
def test_a_pool_without_workers_is_one_sentence(tmp_path, dask):
    dask.worker("COMPILE")
    dask.wait(lambda: "Registered" in (dask.folder / "1.log").read_text())
    process = fleet(tmp_path, "none", "--cluster", dask.address)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and "has the resource CHIP; start some by `dask worker tcp" in err
    assert err.count("\n") == 1


@needs_dask
def test_a_scheduler_that_dies_is_one_sentence_and_nothing_is_lost(tmp_path, dask):
    dask.worker("COMPILE")
    dask.worker("CHIP")
    for number in (1, 2):
        dask.wait(lambda number=number: "Registered" in (dask.folder / f"{number}.log").read_text())
    process = fleet(tmp_path, "cut", "--cluster", dask.address)
    dask.wait(lambda: list((tmp_path / "results" / "cut").rglob("results.log")))
    dask.processes[0].kill()
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1 and err.startswith("error: ") and err.count("\n") == 1, err
    assert ended(fleet(tmp_path, "cut")) == ended(fleet(tmp_path, "whole"))
