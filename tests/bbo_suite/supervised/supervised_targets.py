"""Services of the tests' children: one that works, and every way in which a compiler fails."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

_KEPT = []


def children(others=()):
    """Return the ids of the running processes that this process has started, besides others."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z" and int(fields[1]) == os.getpid():
            found.append(int(file.parent.name))
    return [child for child in found if child not in others]


def echo(factor=1):
    """Answer numbers; on request, fail as compilers do."""

    def answer(request, enter):
        if isinstance(request, int | float):
            return request * factor
        what, argument = request
        _FAULTS[what](argument, enter)
        return argument

    return answer


def _print(times, enter):
    for stream in (1, 2):
        os.write(stream, b"\x80\x04rubbish\n" * times)
    print("more rubbish" * times, flush=True)


def _eat(size, enter):
    _KEPT.append(bytearray(size))


def _die(times_and_path, enter):
    """Die as if killed from outside, this many times in all."""
    times, path = times_and_path
    with Path(path).open("a+b") as file:
        file.write(b".")
        if file.tell() <= times:
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)


def _abort(words, enter):
    print(words, file=sys.stderr, flush=True)
    os.abort()


def _raise(words, enter):
    raise ValueError(words)


def _stage(seconds, enter):
    enter("run the result", 0.3)
    time.sleep(seconds)


_FAULTS = {
    "print": _print,
    "eat": _eat,
    "die": _die,
    "abort": _abort,
    "raise": _raise,
    "exit": lambda code, enter: os._exit(code),
    "sleep": lambda seconds, enter: time.sleep(seconds),
    "stage": _stage,
    "pid": lambda argument, enter: None,
    "die in stage": lambda argument, enter: (enter("run the result", 5), os._exit(3)),
}


def pid():
    """Answer the process id."""
    return lambda request, enter: (time.sleep(request), os.getpid())[1]


def place():
    """Answer where the child works and what it is told."""
    return lambda request, enter: (str(Path.cwd()), dict(os.environ), os.getpid())


def daemons():
    """Leave a process behind in a session of its own, its child too, and answer when both are running."""

    def answer(seconds, enter):
        subprocess.Popen(["sh", "-c", f"setsid sh -c 'sleep {seconds} & sleep {seconds}' & sleep 0.1"]).wait()

    return answer


def unfit():
    """Refuse to start."""
    raise ValueError("no such program")


def hungry():
    """Take too much memory during the start."""
    _KEPT.append(bytearray(4 << 30))


def slow(starts):
    """Count the starts in a file, and never become ready."""
    with Path(starts).open("a") as file:
        file.write(".")
    time.sleep(60)


def dies():
    """Die during the start."""
    os._exit(7)
