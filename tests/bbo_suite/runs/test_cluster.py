"""Runs on a real Dask scheduler, and shares of a study as a batch system runs them; some processes are killed."""

import importlib.util
import json
import logging
import os
import shlex
import signal
import time
from pathlib import Path

import pytest
from bbo_toys import rows_of, start_suite, wait_for

import bbo_suite
from bbo_suite import UserError
from bbo_suite.registry import Registry
from bbo_suite.runs import cluster
from bbo_suite.runs.study_plan import StudyPlan
from bbo_suite.store.plan import read_planned


def test_a_missing_extra_is_one_sentence(suite, toy, monkeypatch):
    monkeypatch.setattr("bbo_suite.core.libraries.find_spec", lambda name: None)
    done = suite("run", *toy, "--budget", 20, "--study", "s", "--cluster", "tcp://127.0.0.1:8786", "--quiet")
    assert done.code == 1 and done.err == (
        'error: a cluster needs distributed, which is not installed; run: pip install "bbo_suite[cluster]"\n'
    )


needs_dask = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="dask is not installed")


@needs_dask
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense", "", "http://127.0.0.1:8787"])
def test_a_wrong_address_is_one_sentence_before_any_problem_is_loaded(suite, toy, address, monkeypatch):
    monkeypatch.setattr(cluster, "ANSWER_SECONDS", 0.5)
    done = suite("run", "--problem", "toy/none", *toy, "--study", "s", "--cluster", address)
    assert done.code == 1 and done.err.startswith(f"error: no Dask scheduler answers at '{address}' (")
    assert done.err.count("\n") == 1


def start(folder, toy, *arguments, repeats=4):
    given = [*toy, "--strategy", "pick", "--strategy", "random", "--budget", 400, "--repeats", repeats]
    return start_suite(folder, "run", *given, "--study", "s", *arguments)


def finish(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def rows(folder):
    return {path.parent.name: rows_of(path.parent) for path in sorted((folder / "results/s").glob("*/rows.csv"))}


def holders(folder):
    """Return the process that holds each run's lock, from what the kernel says."""
    inodes = {path.stat().st_ino: path.parent.name for path in (folder / "results/s").glob("*/.lock")}
    fields = [line.split() for line in Path("/proc/locks").read_text().splitlines() if "FLOCK" in line]
    return {inodes[inode]: int(f[4]) for f in fields if (inode := int(f[5].rpartition(":")[2])) in inodes}


@needs_dask
@pytest.mark.slow
def test_nothing_of_dasks_own_is_logged():
    dask = pytest.importorskip("dask.config")
    with dask.set({"distributed.comm.timeouts.connect": 1}), pytest.raises(OSError):
        cluster.connected("tcp://127.0.0.1:9").__enter__()
    logs = [name for name in logging.Logger.manager.loggerDict if name.startswith(("distributed", "tornado"))]
    assert logs and not [name for name in logs if logging.getLogger(name).isEnabledFor(logging.ERROR)]


@needs_dask
@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(tmp_path, toy, dask):
    workers = [dask.worker(TOY_SECONDS="0.3") for _ in range(3)]
    process = start(tmp_path, toy, "--cluster", dask.address)
    wait_for(lambda: len(holders(tmp_path)) == 3 and any(len(run) >= 100 for run in rows(tmp_path).values()))
    held = {pid: run for run, pid in holders(tmp_path).items()}
    victim = next(worker for worker in workers if worker.pid in held)
    victim.send_signal(signal.SIGKILL)
    wait_for(lambda: holders(tmp_path).get(held[victim.pid]) in {w.pid for w in workers if w is not victim})
    code, _, err = finish(process)
    assert code == 0, err
    assert "error" not in err, err
    (tmp_path / "here").mkdir()
    assert finish(start(tmp_path / "here", toy))[0] == 0
    assert rows(tmp_path) == rows(tmp_path / "here") and len(rows(tmp_path)) == 8
    assert not list((tmp_path / "results/s").glob(".bbo_suite_*"))


@needs_dask
@pytest.mark.slow
@pytest.mark.parametrize("end", ["command", "scheduler", "interrupt"])
def test_after_any_end_the_same_command_again_goes_on(tmp_path, toy, dask, end):
    dask.worker(TOY_SECONDS="0.3")
    process = start(tmp_path, toy, "--cluster", dask.address)
    wait_for(lambda: any(len(run) >= 100 for run in rows(tmp_path).values()))
    if end == "interrupt":
        process.send_signal(signal.SIGINT)
        code, _, err = finish(process)
        assert code == 130 and "run the same command to resume" in err
    elif end == "scheduler":
        dask.scheduler.kill()
        code, _, err = finish(process)
        assert code == 1 and "was lost; stored rows are kept: run the same command again" in err
        dask.end()
    else:
        process.kill()
        process.communicate(timeout=30)
    wait_for(lambda: not holders(tmp_path))
    stored = rows(tmp_path)
    assert sum(map(len, stored.values())) < 3200
    assert finish(start(tmp_path, toy, "--jobs", "1"))[0] == 0  # here, where the cluster began
    assert [len(run) for run in rows(tmp_path).values()] == [400] * 8
    assert all(rows(tmp_path)[name][: len(run)] == run for name, run in stored.items())


@needs_dask
@pytest.mark.slow
def test_a_run_that_brings_down_its_workers_is_one_error(tmp_path, toy, dask):
    (tmp_path / "fatal.py").write_text(Path(toy[3]).read_text().replace("return self", "__import__('os')._exit(9)"))
    for _ in range(3):
        dask.worker()
    given = ("--plugin", "fatal.py", "--strategy", "fatal", "--cluster", dask.address)
    code, _, err = finish(start(tmp_path, toy, *given, repeats=1))
    assert code == 1 and "fatal on toy/small, seed 0: every worker that tried it died (out of memory, or" in err
    assert err.count("error:") == 1
    assert {name: len(run) for name, run in rows(tmp_path).items()} == {
        "toy--small__fatal__0": 0,
        "toy--small__pick__0": 400,
        "toy--small__random__0": 400,
    }


@needs_dask
@pytest.mark.slow
def test_workers_that_have_threads(tmp_path, toy, dask):
    dask.worker(threads="2")
    dask.wait_for_workers(1)
    code, _, err = finish(start(tmp_path, toy, "--cluster", dask.address))
    assert code == 1 and "has 2 threads, but each run needs a process: start workers by `dask worker tcp" in err


def start_share(folder, toy, *arguments, seconds="0"):
    given = [*toy, "--strategy", "pick", "--strategy", "random", "--budget", 300, "--repeats", 3, "--jobs", 1]
    return start_suite(folder, "run", *given, "--study", "s", *arguments, TOY_SECONDS=seconds)


def run_here(folder, toy):
    """Run the whole study, or what is left of it, in this process."""
    settings = {"budget": 300, "repeats": 3, "study": "s", "jobs": 1, "results": folder / "results"}
    bbo_suite.run(["pick", "random"], "toy/small", plugins=toy[1::2], **settings)


def finished(process):
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


@pytest.mark.slow
def test_shares_at_the_same_time_make_the_study_and_a_killed_one_is_made_up_for(tmp_path, toy):
    victim = start_share(tmp_path, toy, "--only", "1/3", seconds="2")
    others = [start_share(tmp_path, toy, "--only", f"{number}/3") for number in (2, 3)]
    for _ in range(400):
        if (tmp_path / "results/s/.lock-1-of-3").exists() and any(map(len, rows(tmp_path).values())):
            break
        time.sleep(0.05)
    second = start_share(tmp_path, toy, "--only", "1/3")
    assert "another process is writing share 1/3 of study 's'" in second.communicate(timeout=60)[1]
    victim.send_signal(signal.SIGKILL)
    victim.communicate(timeout=60)
    assert all("when all shares are done: python -m bbo_suite report s" in finished(process) for process in others)
    run_here(tmp_path / "whole", toy)
    assert len(read_planned(tmp_path / "results/s")) == 6  # one share was enough to list them all
    assert sum(len(run) == 300 for run in rows(tmp_path).values()) < 6
    finished(start_share(tmp_path, toy, "--only", "1/3"))
    assert rows(tmp_path) == rows(tmp_path / "whole") and len(rows(tmp_path)) == 6
    for path in (tmp_path / "results/s").glob("*/rows.csv"):  # torn by a crash, the end still there
        os.truncate(path, path.stat().st_size - 37)
    run_here(tmp_path, toy)  # the whole after its shares
    assert rows(tmp_path) == rows(tmp_path / "whole")


def test_a_plan_lists_a_command_a_run(suite, toy, tmp_path):
    given = (*toy, "--budget", 50, "--repeats", 2, "--study", "s", "--option", "size=4", "--results", tmp_path / "r")
    done = suite("plan", *given, "--list")
    lines = done.out.splitlines()
    assert len(lines) == 2 and not (tmp_path / "r").exists()
    for line in lines:
        words = shlex.split(line)
        assert words[:4] == ["python", "-m", "bbo_suite", "run"]
        assert suite(*words[3:], "--quiet").code == 0
    summaries = [json.loads(line) for line in suite("run", *given, "--json").out.splitlines()]
    assert [(s["seed"], s["evaluations"]) for s in summaries] == [(0, 50), (1, 50)]
    assert all(
        json.loads((tmp_path / "r/s" / s["path"] / "run.json").read_text())["options"]["size"] == 4 for s in summaries
    )


def test_a_share_loads_only_its_own_problems(toy, tmp_path):
    registry = Registry(tuple(toy[1::2]))
    options = {"pick": registry.strategy("pick").Options()}
    study = StudyPlan("s", tmp_path, registry, ("toy/small", "toy/none"), options, only=(1, 2))
    other = StudyPlan("s", tmp_path, registry, ("toy/small", "toy/none"), options, only=(2, 2))
    with pytest.raises(UserError, match="toy/none"):
        study.prepare(), other.prepare()
    assert sum(isinstance(_prepared(each), list) for each in (study, other)) == 1


def _prepared(study):
    try:
        return study.prepare()
    except UserError as error:
        return error
