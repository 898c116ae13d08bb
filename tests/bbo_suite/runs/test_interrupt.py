"""Ctrl-C on real processes, and a strategy that ends its process: nothing is lost, and resuming is exact."""

import csv
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from bbo_toys import start_suite
from joblib.externals.loky import process_executor

import bbo_suite
from bbo_suite import __main__ as main
from bbo_suite.runs.interrupt import StopFile
from bbo_suite.runs.processes import in_processes

PLUGINS = [Path(__file__).parents[1] / "plugins" / name for name in ("toy.py", "pick.py")]


def start(folder, toy, *arguments, seconds="0.1", **variables):
    given = [*toy, "--budget", 2000, "--study", "s", *arguments]
    return start_suite(folder, "run", *given, own_session=True, TOY_SECONDS=seconds, **variables)


def rows(folder):
    """Return what must be equal of every stored row, by run."""
    found = {}
    for path in sorted(folder.glob("results/s/*/rows.csv")):
        with path.open(newline="") as file:
            columns = ("evaluation", "digest", "value", "status", "config")
            found[path.parent.name] = [[row[column] for column in columns] for row in csv.DictReader(file)]
    return found


def wait_for_rows(folder, process, wanted=1):
    for _ in range(400):
        if process.poll() is not None:
            pytest.fail(f"ended early: {process.communicate()}")
        if sum(len(lines) > 0 for lines in rows(folder).values()) >= wanted:
            return
        time.sleep(0.05)
    pytest.fail("no rows came")


def wait_for_first_batches(folder, runs):
    for _ in range(400):
        if len(list(folder.glob("results/s/*/rows.csv"))) == runs:
            break
        time.sleep(0.05)
    time.sleep(0.3)


def run_here(folder, jobs):
    """Run the rest of the study in this process."""
    settings = {"budget": 2000, "repeats": 2, "study": "s", "results": folder / "results", "plugins": PLUGINS}
    bbo_suite.run("pick", "toy/small", jobs=jobs, **settings)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the folder of a study that nobody interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    run_here(folder, 1)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("group", [False, True])
def test_interrupted_then_resumed_equals_uninterrupted(tmp_path, toy, whole, jobs, group):
    more = ("--repeats", "2", "--jobs", str(jobs))
    process = start(tmp_path, toy, *more)
    wait_for_rows(tmp_path, process, jobs)
    os.killpg(process.pid, signal.SIGINT) if group else process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "finishing the current evaluations" in err
    assert "everything is stored in results/s: run the same command to resume" in err
    assert "Traceback" not in err
    stored = rows(tmp_path)
    assert 0 < sum(map(len, stored.values())) < 4000
    assert all(len(run) % 100 == 0 for run in stored.values())
    assert len(list(tmp_path.glob("results/s/*/run.json"))) == jobs  # the others did not start
    run_here(tmp_path, jobs)
    assert rows(tmp_path) == rows(whole)
    assert [len(run) for run in rows(tmp_path).values()] == [2000, 2000]


@pytest.mark.slow
def test_sigterm_to_all_processes_stops_after_the_batch_and_leaves_no_folder(tmp_path, toy):
    """As a service manager or a cluster's scheduler sends it."""
    (tmp_path / "temporary").mkdir()
    more = ("--repeats", "2", "--jobs", "2")
    process = start(tmp_path, toy, *more, TMPDIR=str(tmp_path / "temporary"))
    wait_for_rows(tmp_path, process, 2)
    os.killpg(process.pid, signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "run the same command to resume" in err and "Traceback" not in err
    assert all(len(run) % 100 == 0 for run in rows(tmp_path).values())
    assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_second_interrupt_ends_at_once_and_leaves_no_process(tmp_path, toy, jobs):
    process = start(tmp_path, toy, "--repeats", "2", "--jobs", jobs, seconds="3")
    wait_for_first_batches(tmp_path, int(jobs))
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.3)
    started = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert time.monotonic() - started < 2.5, err
    assert process.returncode == 130
    assert "stopped at once; stored evaluations are kept in results/s: run the same command to resume" in err
    assert "Traceback" not in err
    for _ in range(100):
        if not others_in_group(process.pid):
            break
        time.sleep(0.1)
    assert not others_in_group(process.pid)


@pytest.mark.slow
def test_worker_processes_end_when_their_parent_is_killed_even_during_a_batch(tmp_path, toy):
    process = start(tmp_path, toy, "--repeats", "2", "--jobs", "2", seconds="2.5")
    wait_for_first_batches(tmp_path, 2)
    process.kill()
    for _ in range(20):  # less than a batch takes
        if not others_in_group(process.pid):
            break
        time.sleep(0.1)
    assert not others_in_group(process.pid)
    process.communicate()


PLACES = ["bbo_suite.core.space", "bbo_suite.report", "script"]


@pytest.mark.parametrize(
    "place", ["bbo_suite.runs.study_plan", *(pytest.param(p, marks=pytest.mark.slow) for p in PLACES)]
)
def test_an_interrupt_while_a_command_starts_is_one_word(tmp_path, place):
    code = f"""if True:
        import importlib.abc, os, signal, sys
        class Finder(importlib.abc.MetaPathFinder):  # presses Ctrl-C in the middle of an import
            def find_spec(self, name, path, target=None):
                if name == {"bbo_suite.core.task" if place == "script" else place!r}:
                    os.kill(os.getpid(), signal.SIGINT)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell makes background jobs ignore it
        sys.meta_path.insert(0, Finder())"""
    (tmp_path / "sitecustomize.py").write_text(code)
    start = ["-c", "import sys; sys.argv[0] = '/bin/bbo-suite'; from bbo_suite.__main__ import main; main()"]
    start = start if place == "script" else ["-m", "bbo_suite"]
    command = [sys.executable, *start, "report" if place.endswith("report") else "run", "s"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")


def others_in_group(group):
    stats = [path.read_text().rpartition(")")[2].split() for path in Path("/proc").glob("[0-9]*/stat") if path.exists()]
    return [fields for fields in stats if int(fields[2]) == group and fields[0] != "Z"]


def test_stop_file_appears_at_the_first_signal_and_the_handler_comes_back():
    before = signal.getsignal(signal.SIGINT)
    with StopFile() as stop:
        assert not stop.stopped
        signal.raise_signal(signal.SIGINT)
        assert stop.stopped and stop.path.exists()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    assert not stop.path.exists()


def test_a_third_signal_does_not_interrupt_how_the_second_ends_processes():
    before, ended = signal.getsignal(signal.SIGINT), []
    with pytest.raises(KeyboardInterrupt), StopFile():
        signal.raise_signal(signal.SIGINT)
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
            ended.append(True)
    assert ended and signal.getsignal(signal.SIGINT) is before


def test_a_stop_file_for_other_machines_replaces_that_of_a_killed_process(tmp_path):
    left = [tmp_path / name for name in (".stop=x", ".stop-1-of-2=x")]
    for folder in left:
        folder.mkdir()
    with StopFile(tmp_path / ".stop") as stop:
        assert stop.path.parent.parent == tmp_path and [folder.exists() for folder in left] == [False, True]
    assert list(tmp_path.iterdir()) == left[1:]


def test_sigterm_ends_every_command_as_ctrl_c_does(monkeypatch):
    before, cleaned = signal.getsignal(signal.SIGTERM), []

    def command():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            cleaned.append(True)

    monkeypatch.setattr("bbo_suite.cli.app", lambda **given: command())
    with pytest.raises(SystemExit) as ended:
        main.main()
    signal.signal(signal.SIGTERM, before)
    assert ended.value.code == 130 and cleaned


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


@pytest.mark.slow
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
@pytest.mark.parametrize("command", ["run --plugin", "check"])
def test_a_plugin_that_ends_the_process_outside_a_run_is_an_error(tmp_path, command):
    (tmp_path / "ends.py").write_text("import os\nos._exit(0)\n")
    done = start_suite(tmp_path, *command.split(), "ends.py")
    _, err = done.communicate(timeout=60)
    assert done.returncode == 1
    assert err.startswith("error: before the command was done, its process ended with exit code 0: ")


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_thread_that_a_strategy_leaves_running_ends_with_the_command(tmp_path, jobs):
    how = "import threading, time; threading.Thread(target=time.sleep, args=[1000]).start()"
    for name in ("first", "second"):
        (tmp_path / f"{name}.py").write_text(ENDS.format(how=how))
    done = run(tmp_path, "first", "second", jobs=jobs)
    assert done.returncode == 0 and all(json.loads(line)["complete"] for line in done.stdout.splitlines())
    left = "a plugin has left a thread running, which ends with this command\n"
    assert done.stderr.endswith(left) == (jobs == 1) and "Traceback" not in done.stderr


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


@pytest.mark.slow
@pytest.mark.parametrize("end", ["close", "throw"])
def test_a_pool_is_killed_without_a_word(monkeypatch, recwarn, end):
    """Its thread may find that what it is about to kill has gone."""
    said, missed, original = [], [], process_executor._ExecutorManagerThread.kill_workers

    def kill(self, reason):
        original(self, reason)
        missed.append(reason)
        {}.popitem()

    monkeypatch.setattr(threading, "excepthook", said.append)
    monkeypatch.setattr(process_executor._ExecutorManagerThread, "kill_workers", kill)
    results = in_processes(time.sleep, [(0,), (3,), (3,)], 2)
    next(results)
    if end == "close":
        results.close()
    else:
        with pytest.raises(KeyboardInterrupt):
            results.throw(KeyboardInterrupt)
    assert missed and not said and not list(recwarn)
