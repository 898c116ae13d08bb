"""Commands that a child runs: with a limit of time, without input, and with the processor time that they took.

Imports the standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_SHELL = re.compile(r"[|&;<>()$`\n*?\[\]#~]|^\s*\w+=")
"""What only a shell understands."""
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_TAIL = 4000
"""Bytes at the end of what a process printed in which an explanation is looked for."""


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes:
      code: its exit code; negative for a signal.
      cpu: seconds of processor time, of the processes that it waited for, too.
      wall: seconds.
      late: whether it was ended because it took too long.
    """

    code: int
    cpu: float
    wall: float
    late: bool = False

    def failure(self, seconds: float) -> str:
        """Return why it counts as failed, empty if it does not."""
        if self.late:
            return f"took more than {seconds:.3g} s"
        if not self.code:
            return ""
        with contextlib.suppress(ValueError):
            name = signal.Signals(self.code - 128 if self.code > 128 else -self.code).name  # a shell adds 128
            return f"died of {name}" + (": it wrote too large a file" if name == "SIGXFSZ" else "")
        return f"ended with exit code {self.code}"


def filled(template: str, values: Mapping[str, str]) -> str:
    """Return a command with texts in the places `{name}`.

    A text that stands alone becomes as many words as it has; as a part of a word, as in `CFLAGS={flags}`, it stays in
    this word. Inside quotes it is put as it is. Other braces stay.
    """

    def text(found: re.Match[str]) -> str:
        before = template[: found.start()]
        value = values.get(found[1])
        if value is None:
            return found[0]
        if is_quoted(before) or before[-1:].isspace() or not before:
            return value
        return shlex.quote(value) if value else ""

    return _PLACEHOLDER.sub(text, template)


def is_quoted(before: str) -> bool:
    """Return whether a quotation mark is open after the text before a place."""
    mark = ""
    for character in before:
        if character in (mark or "'\""):
            mark = "" if mark else character
    return bool(mark)


def words(command: str) -> list[str]:
    """Return the words to start a command with: a shell only if it needs one.

    Raises:
      ValueError: a quotation mark is not closed.
    """
    split = shlex.split(command)
    return ["/bin/sh", "-c", command] if _SHELL.search(command) else split


def run(
    command: str, folder: Path, output: Path, seconds: float, environment: Mapping[str, str] | None = None
) -> Ended:
    """Run a command until it ends or its time is over; its group of processes ends with it.

    Args:
      folder: where it runs.
      output: the file that takes its standard output; the same name with `.err` takes its errors.
      seconds: limit of its wall time.
      environment: variables beside those of this process.

    Raises:
      OSError: the program does not exist, or cannot be started.
    """
    late = threading.Event()
    with output.open("wb") as out, output.with_suffix(".err").open("wb") as errors:
        started = time.perf_counter()
        process = subprocess.Popen(
            words(command),
            cwd=folder,
            env=os.environ | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
            start_new_session=True,
        )

    def end() -> None:
        late.set()
        _end_group(process.pid)

    timer = threading.Timer(seconds, end)
    timer.start()
    try:
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
    finally:
        timer.cancel()
        _end_group(process.pid)
        _end_orphans()
    process.returncode = os.waitstatus_to_exitcode(status)
    return Ended(process.returncode, used.ru_utime + used.ru_stime, wall, late.is_set())


def last_words(output: Path) -> str:
    """Return the line of a command's errors or output that best explains a failure."""
    for file in (output.with_suffix(".err"), output):
        with file.open("rb") as printed:
            lines = last_lines(printed)
        raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]  # Python ends with it
        telling = [line for line in lines if re.search("error|fatal|not found|cannot", line, re.IGNORECASE)]
        if lines:
            return (raised[-1:] or telling or lines[-1:])[0][:200]
    return ""


def last_lines(printed: IO[bytes]) -> list[str]:
    """Return the lines at the end of what a process printed, without empty ones."""
    printed.seek(max(0, printed.seek(0, os.SEEK_END) - _TAIL))
    return [line.strip() for line in printed.read().decode(errors="replace").splitlines() if line.strip()]


_SET_CHILD_SUBREAPER = 36
_adopts = False


def adopt_orphans() -> None:
    """Make what outlives a command that hid from its group a child of this process, which `run` then ends.

    Only for a process whose children are commands alone. Without Linux, such processes end with this one.
    """
    global _adopts
    with contextlib.suppress(AttributeError, OSError):
        _adopts = ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1) == 0


def _end_orphans() -> None:
    for number in _orphans() if _adopts else ():
        with contextlib.suppress(OSError):
            os.kill(number, signal.SIGKILL)
            os.waitpid(number, 0)


def _orphans() -> list[int]:
    """Return the children of this process, numbered as in its namespace; /proc may be that of another."""
    found = []
    with contextlib.suppress(OSError, StopIteration):  # a thread, or a child, that has just ended
        for file in Path("/proc/self/task").glob("*/children"):
            for child in file.read_text().split():
                lines = Path("/proc", child, "status").read_text().splitlines()
                found.append(int(next(line for line in lines if line.startswith("NSpid:")).split()[-1]))
    return found


def _end_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
