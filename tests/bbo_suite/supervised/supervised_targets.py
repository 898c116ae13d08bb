"""Services of the tests' children: those of live problems, one that works, and every way in which a compiler fails."""

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


def numbered():
    """Answer whether this process has in /proc the number that it knows, as CUDA needs it."""
    return lambda request, enter: Path("/proc/self").readlink().name == str(os.getpid())


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


def add(requests):
    """Answer the sum of two requests; one of them may ask for a fault."""
    answer = echo()

    def handler(request, enter):
        first, second = (requests[i] for i in request)
        for one in (first, second):
            if isinstance(one, tuple) and one[0] == "wrong":
                return "wrong_result", "it returns 1, not 2"
            if isinstance(one, tuple):
                answer(one, enter)
        return first + second if isinstance(first, int) and isinstance(second, int) else 9

    return handler


def sleepy(requests):
    """Answer the sum after a while."""
    handler = add(requests)
    return lambda request, enter: (time.sleep(0.03), handler(request, enter))[1]


def useless(requests):
    """Fail at every request."""
    return echo("no number")


def add_with_parts(requests):
    """Answer the sum, and if they are asked for, both numbers as parts."""
    handler = add(requests)

    def with_parts(request, enter):
        if request[0] != "parts":
            return handler(request, enter)
        numbers = [requests[i] for i in request[1]]
        whole = isinstance(outcome := handler(request[1], enter), int)
        return outcome, [(f"slot {i}", b"", 1.0, float(n)) for i, n in enumerate(numbers)] if whole else []

    return with_parts
