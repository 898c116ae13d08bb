"""Runs the commands of the child: those of GCC, and the compiled program, which is a user's and gets narrow limits."""

from __future__ import annotations

import contextlib
import ctypes
import re
import resource
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

_CPU_SECONDS = 60
"""Limit on the processor time of every command."""
_OUTPUT = 1 << 20
"""Most bytes of any file that the program may write, and that are read of what a command prints."""
_TIMES = 3
"""How often a command is run if a signal ends it: the signal may come from outside."""
_KILLED = re.compile("signal terminated program|terminated with signal|[Ii]nternal (compiler )?error")
"""What GCC, the assembler and the linker print when a signal ended one of them."""
Done = subprocess.CompletedProcess[str]


def run(command: Sequence[str]) -> Done:
    """Run a command of the compiler and return how it ended and what it printed."""
    return _run(command, preexec_fn=_bound)


def run_program(command: Sequence[str], folder: Path, seconds: float | None) -> Done:
    """Run the compiled program in an empty folder, without an environment.

    It may start no process (root may, but the end of this process ends those) and write little.

    Args:
      folder: where to make the folder.
      seconds: time limit.

    Raises:
      subprocess.TimeoutExpired: it took longer.
    """
    with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as place:
        return _run(command, preexec_fn=_confine, cwd=place, env={}, timeout=seconds)


def ending(code: int) -> str:
    """Return how a program ended that did not return its results."""
    if code >= 0:
        return f"ended with exit code {code} before it had a result"
    name = signal.Signals(-code).name
    return f"died of {name}" + (f": it wrote more than {_OUTPUT >> 20} MiB" if name == "SIGXFSZ" else "")


def _run(command: Sequence[str], preexec_fn: Callable[[], None], **settings: Any) -> Done:  # noqa: ANN401 - of `run`
    """Run a command, again if a signal ended it; files bound the memory that its output takes."""
    for _ in range(_TIMES):
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            settings |= {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err}
            code = subprocess.run(command, preexec_fn=preexec_fn, **settings).returncode
            done = Done(command, code, _start(out), _start(err))
        if code >= 0 and not _KILLED.search(done.stderr):
            break
    return done


def _start(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_OUTPUT).decode(errors="replace")


def _bound() -> None:
    """Limit a command: it ends with this process, or after `_CPU_SECONDS` of processor time."""
    with contextlib.suppress(OSError, AttributeError, ValueError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))


def _confine() -> None:
    _bound()
    resource.setrlimit(resource.RLIMIT_FSIZE, (_OUTPUT, _OUTPUT))
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
