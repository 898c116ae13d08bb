"""The same numbers wherever jobs are carried out, also when a worker or the fleet is killed; and the store."""

import importlib.util
import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from bbo_toys import environment, wait_for

from bbo_suite.errors import UserError
from bbo_suite.fleet.store import HEAD, LOG

from .conftest import SETTINGS

needs_dask = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="dask is not installed")
POLICIES = [word for name in ("weight", "search", "transfer", "graybox-model", "oracle") for word in ("--policy", name)]
OPTIONS = [word for text in ("release=4", "programs=30", "evaluations=16") for word in ("--option", text)]
GIVEN = [*POLICIES, *OPTIONS, "--days", "6", "--budget", "2000", "--json", "--quiet", "--study", "s"]


def fleet(folder, *more):
    command = [sys.executable, "-m", "bbo_suite", "fleet", *GIVEN, *more]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, env=environment(), **pipes)


def ended(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


def error_of(process):
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1 and err.startswith("error: ") and err.count("\n") == 1, err
    return err


def logs(folder):
    return {path.parent.name: path.read_bytes() for path in folder.rglob("results.log")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return what a fleet prints that runs in one process, and its logs."""
    folder = tmp_path_factory.mktemp("whole")
    return ended(fleet(folder)), logs(folder)


@pytest.mark.slow
def test_processes(tmp_path, whole):
    assert ended(fleet(tmp_path, "--jobs", "2")) == whole[0]


@pytest.mark.slow
def test_a_killed_fleet_resumes_with_the_same_numbers(tmp_path, whole):
    total = sum(map(len, whole[1].values()))
    for size in (1, total // 4, total // 2):
        process = fleet(tmp_path)
        wait_for(lambda size=size: sum(map(len, logs(tmp_path).values())) >= size, 300)
        process.kill()
        process.communicate()
    assert logs(tmp_path) != whole[1], "it had ended before it was killed"
    assert ended(fleet(tmp_path)) == whole[0] and logs(tmp_path) == whole[1]


@pytest.mark.slow
@needs_dask
def test_two_pools_of_which_workers_die(tmp_path, dask, whole):
    compiling, chip, second = (dask.worker("--resources", f"{pool}=1") for pool in ("COMPILE", "CHIP", "CHIP"))
    dask.wait_for_workers(3)
    process = fleet(tmp_path, "--cluster", dask.address)
    wait_for(lambda: logs(tmp_path), 300)
    chip.kill()
    dask.worker("--resources", "COMPILE=1")
    dask.wait_for_workers(4)
    compiling.kill()
    assert ended(process) == whole[0]
    assert second.poll() is None


@pytest.mark.slow
@needs_dask
def test_a_pool_without_workers_is_one_sentence(tmp_path, dask):
    dask.worker("--resources", "COMPILE=1")
    dask.wait_for_workers(1)
    assert "has the resource CHIP; start some by `dask worker tcp" in error_of(
        fleet(tmp_path, "--cluster", dask.address)
    )


@pytest.mark.slow
@needs_dask
def test_a_scheduler_that_dies_is_one_sentence_and_nothing_is_lost(tmp_path, dask, whole):
    for pool in ("COMPILE", "CHIP"):
        dask.worker("--resources", f"{pool}=1")
    dask.wait_for_workers(2)
    process = fleet(tmp_path, "--cluster", dask.address)
    wait_for(lambda: logs(tmp_path), 300)
    dask.scheduler.kill()
    assert "was lost; stored rows are kept" in error_of(process)
    assert ended(fleet(tmp_path)) == whole[0]


@pytest.fixture
def log(tmp_path):
    return tmp_path / "store" / LOG


@pytest.mark.slow
def test_a_fleet_that_was_cut_anywhere_ends_with_the_same_numbers(fleet, log):
    days = fleet("transfer")
    whole, rng = log.read_bytes(), np.random.default_rng(0)
    for size in [0, 1, 60, len(whole) - 1, *rng.integers(0, len(whole), 6).tolist()]:
        log.write_bytes(whole[:size])
        assert fleet("transfer") == days
        assert log.read_bytes() == whole


def test_another_fleet_or_another_version_is_refused(tmp_path, fleet, log):
    fleet()
    before, head = log.read_bytes(), tmp_path / "store" / HEAD
    with pytest.raises(UserError, match="holds results with settings"):
        fleet(settings=replace(SETTINGS, noise=0.5))
    head.write_text(json.dumps(json.loads(head.read_text()) | {"version": 0}))
    with pytest.raises(UserError, match="version 0"):
        fleet()
    head.unlink()
    with pytest.raises(UserError, match="results but no"):
        fleet()
    head.write_text(json.dumps({"version": 1, "policy": "saving", "settings": str(SETTINGS)}))
    with pytest.raises(UserError, match="holds results of more days"):
        fleet(days=6)
    assert log.read_bytes() == before


@pytest.mark.slow
def test_damage_is_refused_and_left_as_it_is(fleet, log):
    fleet()
    whole = log.read_bytes()
    flipped = [whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :] for place in (5, 300, len(whole) // 2)]
    size, last = b'"bytes": ', whole.rindex(b"{")
    sizes = [whole.replace(size, size + b"99", 1), whole[:last] + whole[last:].replace(size, size + b"9")]
    heads = [whole[:last] + b"[" + whole[last + 1 :], whole[:last] + whole[last:].replace(b'"day"', b'"dax"')]
    ends = [whole[:-2] + bytes([whole[-2] ^ 1]) + b"\n", whole + b"1,2\n", whole + b"{}\n"]
    for broken in (*flipped, *sizes, *heads, *ends, *(re.sub(rb'"bytes": \d+', size + n, whole) for n in (b"0", b"7"))):
        log.write_bytes(broken)
        with pytest.raises(UserError, match=r"line \d+ is damaged"):
            fleet()
        assert log.read_bytes() == broken
