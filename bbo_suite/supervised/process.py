"""The parent's side of one child process: started, asked, watched and buried."""

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

_SCRIPT = Path(__file__).with_name("child.py")
_TAIL = 4000


@dataclass(frozen=True)
class Service:
    """What children do, and what they may use.

    Attributes:
      target: `module:function`; called with `arguments` once in each child, it returns a handler, which is called with
        a request and `enter(stage, seconds)` and returns the answer.
      arguments: of the target; anything that pickles.
      seconds: a candidate may take before it enters a stage that says otherwise.
      memory: bytes of address space of a child.
      start_seconds: a child may take until it is ready.
      name: of what is served, for errors; the target when left out.
    """

    target: str
    arguments: tuple[Any, ...] = ()
    seconds: float = 20.0
    memory: int = 4 << 30
    start_seconds: float = 120.0
    name: str = ""

    @property
    def title(self) -> str:
        """What is served, in words."""
        return self.name or self.target


@dataclass
class Child:
    """One process; `task` is the number of the request that it works on, None when it is idle or starting."""

    service: Service
    ready: bool = False
    task: int | None = None
    stage: str = ""
    since: float = 0.0
    limit: float = 0.0
    deadline: float = math.inf
    _printed: Any = field(default_factory=tempfile.TemporaryFile)

    def __post_init__(self) -> None:
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-P", str(_SCRIPT), str(theirs.fileno()), str(os.getpid())]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": self._printed, "stderr": self._printed}
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        with theirs:
            self._process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], start_new_session=True, env=environment, **quiet
            )
        self.connection = Connection(ours.detach())
        self.allow(self.service.start_seconds)
        with contextlib.suppress(OSError):  # it is dead already: whoever waits for it will see that
            self.connection.send((self.service.target, self.service.arguments, self.service.memory, sys.path))

    def ask(self, task: int, request: Any) -> bool:  # noqa: ANN401 - the target's own
        """Send a request and return true, or false if the child has died meanwhile."""
        try:
            self.connection.send(request)
        except OSError:
            return False
        self.task, self.stage, self.since = task, "", time.monotonic()
        self.allow(self.service.seconds)
        return True

    def allow(self, seconds: float) -> None:
        """Give it so many seconds from now on."""
        self.limit, self.deadline = seconds, time.monotonic() + seconds

    def hear(self) -> tuple[Any, ...] | None:
        """Return the next message; None when the child is dead, or talks nonsense."""
        try:
            message = self.connection.recv()
        except Exception:  # an end of file, or bytes that are no pickle
            return None
        return message if isinstance(message, tuple) and message and isinstance(message[0], str) else None

    def end(self, dying: bool = False) -> str:
        """Kill the child with all that it started, and return how it ended, in words.

        Args:
          dying: it is about to end by itself, so let it: its exit code tells why.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0 if dying else 0.0)
        code = self._process.returncode
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.connection.close()
        said = self._last_words()
        self._printed.close()
        ending = "was killed" if code is None else _ending(code)
        return f"{ending}: {said}" if said else ending

    def _last_words(self) -> str:
        """Return the line that explains most of what the child printed for its last request."""
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
