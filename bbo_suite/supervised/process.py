"""The parent's side of one child process: start it, send requests, receive answers, end it."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from .temporary import TemporaryFolder

_SCRIPT = Path(__file__).with_name("keeper.py")
_END_SECONDS = 2.0
"""Time for the keeper of a child to end all its processes."""
_SEARCHED = ("PATH", "LD_LIBRARY_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "CPATH", "C_INCLUDE_PATH")
_COMPILERS = (*_SEARCHED, "SDKROOT", "CONDA_BUILD_SYSROOT", "NIX_CFLAGS_COMPILE", "NIX_LDFLAGS")
"""Variables by which compilers find their parts; a confined child gets no others."""
_TAIL = 4000
"""Bytes at the end of the output that are searched for an explanation."""


@dataclass(frozen=True)
class Service:
    """What children do, and their limits.

    Attributes:
      target: `module:function`. Each child calls it once with `arguments`. It returns a handler, which is called with a
        request and a function `enter(stage, seconds)`, and returns the answer.
      arguments: of the target; anything that can be pickled.
      seconds: time limit of a request, until it enters a stage, which has its own limit.
      memory: largest address space of a child, in bytes.
      start_seconds: time limit of a child until it is ready.
      name: for error messages (default: the target).
      confined: whether the child runs a user's program. Then it works in a temporary folder, has no environment but the
        variables that compilers need, and, where the kernel allows it, sees no other process.
    """

    target: str
    arguments: tuple[Any, ...] = ()
    seconds: float = 20.0
    memory: int = 4 << 30
    start_seconds: float = 120.0
    name: str = ""
    confined: bool = False

    @property
    def title(self) -> str:
        """The name for error messages."""
        return self.name or self.target


@dataclass
class Child:
    """One process, its keeper, and its temporary folder.

    Attributes:
      ready: whether it has started.
      used: whether it has answered a request.
      task: number of the request that it works on, None while it is idle or starts.
      stage: the last stage that it entered for this request.
      since: when the request was sent.
      limit: seconds that it may take now, until `deadline`.
      exited: whether it has ended by itself, not by a signal.
    """

    service: Service
    ready: bool = False
    used: bool = False
    task: int | None = None
    stage: str = ""
    since: float = 0.0
    limit: float = 0.0
    exited: bool = False
    deadline: float = math.inf
    _printed: Any = field(default_factory=tempfile.TemporaryFile)

    def __post_init__(self) -> None:
        self._folder = TemporaryFolder()
        ours, theirs = socket.socketpair()
        how = "confined" if self.service.confined else "free"
        command = [sys.executable, "-P", str(_SCRIPT), str(theirs.fileno()), str(os.getpid()), how]
        with theirs:
            self._process = subprocess.Popen(
                command,
                cwd=self._folder.path if self.service.confined else None,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=self._printed,
                stderr=self._printed,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self.connection = Connection(ours.detach())
        self.set_limit(self.service.start_seconds)
        paths = [str(Path(path).absolute()) for path in sys.path]
        with contextlib.suppress(OSError):  # it is dead already; the next wait for it will notice
            self.connection.send((self.service.target, self.service.arguments, self.service.memory, paths))

    def _environment(self) -> dict[str, str]:
        given = dict(os.environ)
        if self.service.confined:
            given = {name: given[name] for name in _COMPILERS if name in given} | {"LC_ALL": "C"}
        return given | {"OMP_NUM_THREADS": "1", "TMPDIR": str(self._folder.path)}

    def ask(self, task: int, request: Any) -> bool:  # noqa: ANN401 - the target's own
        """Send a request; return False if the child has died."""
        try:
            self.connection.send(request)
        except OSError:
            return False
        self.task, self.stage, self.since = task, "", time.monotonic()
        self.set_limit(self.service.seconds)
        return True

    def set_limit(self, seconds: float) -> None:
        """Set the deadline, in seconds from now."""
        self.limit, self.deadline = seconds, time.monotonic() + seconds

    def receive(self) -> tuple[Any, ...] | None:
        """Return the next message, None if the child is dead or sends something else."""
        try:
            message = self.connection.recv()
        except Exception:  # an end of file, or bytes that are not a pickle
            return None
        return message if isinstance(message, tuple) and message and isinstance(message[0], str) else None

    def end(self, dying: bool = False) -> str:
        """Kill the child and all that it started, and return how it ended, as text.

        Args:
          dying: wait a second first: it is about to end by itself, and its exit code tells why.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0 if dying else 0.0)
        code = self._process.returncode
        self.exited = code is not None and code >= 0
        with contextlib.suppress(subprocess.TimeoutExpired):
            if sys.platform == "linux":  # elsewhere the keeper does not know what to end
                self._process.terminate()
                self._process.wait(_END_SECONDS)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.connection.close()
        line = self._explanation()
        self._printed.close()
        self._folder.remove()
        ending = "was killed" if code is None else _ending(code)
        return f"{ending}: {line}" if line else ending

    def _explanation(self) -> str:
        """Return the most telling line that the child printed during its last request."""
        size = self._printed.seek(0, os.SEEK_END)
        self._printed.seek(max(0, size - _TAIL))
        lines = [line.strip() for line in self._printed.read().decode(errors="replace").splitlines() if line.strip()]
        telling = [line for line in lines if any(word in line.lower() for word in ("assert", "error", "fatal"))]
        return (telling or lines or [""])[0][-200:]


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended without an answer (exit code {code})"
    try:
        return f"died of {signal.Signals(-code).name}"
    except ValueError:
        return f"died of signal {-code}"
