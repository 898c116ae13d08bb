"""Services of the tests' children: one that works, and every way in which a compiler fails."""

import os
import signal
import sys
import time
from pathlib import Path

_KEPT = []


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


def _die_once(path, enter):
    if not Path(path).exists():
        Path(path).touch()
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
    "die once": _die_once,
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


def unfit():
    """Refuse to start."""
    raise ValueError("no such program")


def hungry():
    """Take too much memory during the start."""
    _KEPT.append(bytearray(4 << 30))


def slow():
    """Never become ready."""
    time.sleep(60)


def dies():
    """Die during the start."""
    os._exit(7)
