"""Shares of a study as a batch system runs them: separate processes, one folder, no one in charge."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time

import pytest
from bbo_toys import environment, rows_of

import bbo_suite
from bbo_suite import UserError
from bbo_suite.registry import Registry
from bbo_suite.runs.study_plan import StudyPlan
from bbo_suite.store.plan import read_planned


def start(folder, toy, *arguments, seconds="0"):
    command = [sys.executable, "-m", "bbo_suite", "run", *map(str, toy), "--strategy", "pick", "--strategy", "random"]
    settings = ["--budget", "300", "--repeats", "3", "--study", "s", "--jobs", "1", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*command, *settings], cwd=folder, env=environment() | {"TOY_SECONDS": seconds}, **pipes)


def rows(folder):
    return {path.parent.name: rows_of(path.parent) for path in sorted((folder / "results/s").glob("*/rows.csv"))}


def run_here(folder, toy):
    """Run the whole study, or what is left of it, in this process."""
    settings = {"budget": 300, "repeats": 3, "study": "s", "jobs": 1, "results": folder / "results"}
    bbo_suite.run(["pick", "random"], "toy/small", plugins=toy[1::2], **settings)


def finish(process):
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


@pytest.mark.slow
def test_shares_at_the_same_time_make_the_study_and_a_killed_one_is_made_up_for(tmp_path, toy):
    victim = start(tmp_path, toy, "--only", "1/3", seconds="2")
    others = [start(tmp_path, toy, "--only", f"{number}/3") for number in (2, 3)]
    for _ in range(400):
        if (tmp_path / "results/s/.lock-1-of-3").exists() and any(map(len, rows(tmp_path).values())):
            break
        time.sleep(0.05)
    second = start(tmp_path, toy, "--only", "1/3")
    assert "another process is writing share 1/3 of study 's'" in second.communicate(timeout=60)[1]
    victim.send_signal(signal.SIGKILL)
    victim.communicate(timeout=60)
    assert all("when all shares are done: python -m bbo_suite report s" in finish(process) for process in others)
    run_here(tmp_path / "whole", toy)
    assert len(read_planned(tmp_path / "results/s")) == 6  # one share was enough to list them all
    assert sum(len(run) == 300 for run in rows(tmp_path).values()) < 6
    finish(start(tmp_path, toy, "--only", "1/3"))
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
