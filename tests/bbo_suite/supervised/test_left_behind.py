"""Commands, and what is left behind: no process, whatever it does to hide, and no temporary folder."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bbo_suite.supervised import GPU_ADDRESSES, Service, Workers
from bbo_suite.supervised.commands import filled, last_words, run, words

HERE = Path(__file__).parent
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which processes are left")
_SYSTEM_ADMINISTRATOR = 21


FOLDER = """
import errno, fcntl, sys
def refuse(*_):
    raise OSError(errno.ENOLCK, "No locks available")
fcntl.flock = refuse if sys.argv[1] == "no locks" else fcntl.flock
from bbo_suite.supervised.temporary import TemporaryFolder
with TemporaryFolder() as own:
    print(own, flush=True)
    assert own.is_dir()
    sys.stdin.read()
"""


def holding(folder, how=""):
    """Start a process that has a temporary folder until its input ends; return it and the folder."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    environment = os.environ | {"TMPDIR": str(folder)}
    process = subprocess.Popen([sys.executable, "-c", FOLDER, how], env=environment, **pipes)
    return process, Path(process.stdout.readline().strip())


def ended(process):
    process.communicate(timeout=30)
    return process.returncode == 0


def running(seconds):
    """Return how many processes sleep for this time, which a test makes its own."""
    wanted = f"sleep\0{seconds}\0".encode()
    count = 0
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            count += file.read_bytes() == wanted
        except OSError:
            continue
    return count


def none_running(seconds):
    return any(not running(seconds) or time.sleep(0.05) for _ in range(100))


LEAVES = """
import ctypes, sys, time
for capability in {dropped}:
    ctypes.CDLL(None).prctl(24, capability)  # processes started from now on never have it
sys.path.insert(0, {here!r})
from bbo_suite.supervised import Service, Workers
workers = Workers(Service("supervised_targets:daemons", confined={confined}))
workers.map([{seconds!r}])
from supervised_targets import children
print(*children(), flush=True)
time.sleep(60)
"""


def leaving(confined, seconds, dropped=()):
    """Start a process whose child leaves two sleeping processes; return it and the id of the child's supervisor."""
    code = LEAVES.format(here=str(HERE), confined=confined, seconds=seconds, dropped=dropped)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    supervisor = int(process.stdout.readline())
    assert running(seconds) == 2
    return process, supervisor


@linux
@pytest.mark.parametrize(("confined", "memory"), [(False, 4 << 30), (True, 4 << 30), (True, GPU_ADDRESSES)])
def test_no_process_is_left_when_a_child_ends(confined, memory):
    seconds = f"61.{os.getpid()}{confined:d}{memory.bit_length()}"
    workers = Workers(Service("supervised_targets:daemons", memory=memory, confined=confined))
    workers.map([seconds])
    assert running(seconds) == 2
    workers.close()
    assert not running(seconds)


@linux
def test_a_child_that_may_use_a_gpu_finds_itself_in_proc():
    workers = Workers(Service("supervised_targets:numbered", memory=GPU_ADDRESSES, confined=True))
    assert workers.map([0])[0].value is True
    workers.close()


@pytest.mark.slow
@linux
@pytest.mark.parametrize("confined", [False, True])
def test_no_process_is_left_when_the_suite_is_killed(confined):
    seconds = f"62.{os.getpid()}{confined:d}"
    process, _ = leaving(confined, seconds)
    process.kill()
    process.wait()
    assert none_running(seconds)


@pytest.mark.slow
@linux
@pytest.mark.parametrize("dropped", [(), (_SYSTEM_ADMINISTRATOR,)])
def test_a_namespace_ends_even_with_its_supervisor(dropped):
    """Without the capability of an administrator it lies inside a namespace of users, as for a user who is not root."""
    if not shutil.which("unshare") or subprocess.run(["unshare", "-Urpf", "true"], capture_output=True).returncode:
        pytest.skip("the kernel offers users no namespaces")
    seconds = f"63.{os.getpid()}{len(dropped)}"
    process, supervisor = leaving(True, seconds, dropped)
    os.kill(supervisor, signal.SIGKILL)
    assert none_running(seconds)
    process.kill()
    process.wait()


def test_a_confined_child_works_in_its_own_folder_without_secrets(monkeypatch):
    monkeypatch.setenv("SECRET", "x")
    workers = Workers(Service("supervised_targets:place", confined=True))
    folder, environment, _ = workers.map([0])[0].value
    assert folder == environment["TMPDIR"] and folder != str(Path.cwd())
    assert set(environment) <= {"PATH", "LC_ALL", "OMP_NUM_THREADS", "TMPDIR", "LD_LIBRARY_PATH"}
    workers.close()
    assert not Path(folder).exists()
    (free,) = Workers(Service("supervised_targets:place")).map([0])
    assert free.value[0] == str(Path.cwd()) and free.value[1]["SECRET"] == "x"


@pytest.mark.slow
def test_folders_of_dead_processes_are_removed_at_the_next_start_and_no_link_is_followed(tmp_path, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "file").touch()
    (tmp_path / "bbo-suite-x").symlink_to(other)
    killed, dead = holding(tmp_path)
    living, alive = holding(tmp_path)
    killed.kill()
    killed.communicate()
    assert dead.is_dir()
    last, own = holding(tmp_path)
    assert {*tmp_path.iterdir()} - {tmp_path / "bbo-suite-x"} == {alive, own} and (other / "file").exists()
    assert ended(living) and ended(last) and not alive.exists() and not own.exists()


@pytest.mark.slow
def test_a_disk_without_locks_is_used_all_the_same(tmp_path):
    process, folder = holding(tmp_path, "no locks")
    assert folder.is_dir() and ended(process) and not folder.exists()


def is_running(command):
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return command in listed.splitlines()


@pytest.mark.parametrize(
    ("template", "wanted"),
    [
        ("gcc {flags} -o {out} a.c", ["gcc", "-O2", "-g", "-o", "./x", "a.c"]),
        ("make CFLAGS={flags}", ["make", "CFLAGS=-O2 -g"]),
        ('make "CFLAGS={flags}"', ["make", "CFLAGS=-O2 -g"]),
        ("make CFLAGS='{flags} -w'", ["make", "CFLAGS=-O2 -g -w"]),
        ("awk '{print}' {out}", ["awk", "{print}", "./x"]),
        ("X={flags} run", ["/bin/sh", "-c", "X='-O2 -g' run"]),
        ("make && cp a {out}", ["/bin/sh", "-c", "make && cp a ./x"]),
    ],
)
def test_a_text_becomes_words_or_stays_in_its_word(template, wanted):
    assert words(filled(template, {"flags": "-O2 -g", "out": "./x"})) == wanted


def test_processor_time_counts_work_and_not_waiting(tmp_path):
    loop = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"
    busy, idle = (run(f"sh -c '{what}'", tmp_path, tmp_path / "out.txt", 60) for what in (loop, "sleep 0.1"))
    assert busy.cpu > 3 * idle.cpu and idle.wall > 0.1 > idle.cpu


@pytest.mark.skipif(sys.platform != "linux", reason="reads ps")
@pytest.mark.parametrize("command", ["sleep 71.5", "sh -c 'sleep 71.5 & sleep 71.5'", "sh -c 'sleep 71.5 & exit 0'"])
def test_what_takes_too_long_ends_with_all_that_it_started(tmp_path, command):
    started = time.monotonic()
    ended = run(command, tmp_path, tmp_path / "out.txt", 0.3)
    while is_running("sleep 71.5") and time.monotonic() - started < 10:  # a signal takes a moment on a busy machine
        time.sleep(0.05)
    assert time.monotonic() - started < 10
    assert ended.late == ("exit" not in command)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("sh -c 'echo first >&2; echo error: this >&2; echo last >&2; exit 3'", ("exit code 3", "error: this")),
        ("python3 -c 'import os; os.abort()'", ("SIGABRT", "Aborted")),
        (
            "sh -c 'echo on_first_error=True >&2; echo a.OddError: why >&2; echo later >&2; exit 1'",
            ("exit code 1", "a.OddError: why"),
        ),
        ("sh -c 'read line || exit 1'", ("exit code 1", "")),
    ],
)
def test_a_failure_is_explained_by_its_last_words(tmp_path, command, words):
    ended = run(command, tmp_path, tmp_path / "out.txt", 60)
    assert words[0] in ended.failure(60) and last_words(tmp_path / "out.txt") == words[1]
