"""The suite's side of child processes: one child with its limits, and several that serve one batch.

Why not a library's pool: those of the standard library and loky give up the whole pool when one process dies, and
cannot end a task that takes too long. Compilers crash and hang often, and each time it must cost one candidate only.
"""

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
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from ..errors import UserError
from .commands import last_lines
from .temporary import TemporaryFolder

_SCRIPT = Path(__file__).with_name("child.py")
_END_SECONDS = 2.0
"""Time for the supervisor of a child to end all its processes."""
_SEARCHED = ("PATH", "LD_LIBRARY_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "CPATH", "C_INCLUDE_PATH")
_COMPILERS = (*_SEARCHED, "SDKROOT", "CONDA_BUILD_SYSROOT", "NIX_CFLAGS_COMPILE", "NIX_LDFLAGS")
"""Variables by which compilers find their parts; a confined child gets no others."""
_KILLED = 3
"""New children that signals must end during a request until it counts as failed: signals may come from outside."""
_FAILED_STARTS = 3
"""Failed starts in a row after which the service gives up."""


GPU_ADDRESSES = 1 << 46
"""Bytes of address space for CUDA, which reserves as much as the GPUs and the machine have together."""


def addresses(memory: int) -> int:
    """Return the address space of a child whose program may use a GPU: `memory` where there is none."""
    return GPU_ADDRESSES if Path("/dev/nvidiactl").exists() else memory


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

    With `GPU_ADDRESSES` it sees them: CUDA looks for itself in /proc, under its own number.
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
    """One process, its supervisor, and its temporary folder.

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
        how = "confined" if self.service.confined and self.service.memory < GPU_ADDRESSES else "free"
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
        variables = dict(os.environ)
        if self.service.confined:
            variables = {name: variables[name] for name in _COMPILERS if name in variables} | {"LC_ALL": "C"}
        return variables | {"OMP_NUM_THREADS": "1", "TMPDIR": str(self._folder.path)}

    def send(self, task: int, request: Any) -> bool:  # noqa: ANN401 - the target's own
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
            if sys.platform == "linux":  # elsewhere the supervisor does not know what to end
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
        lines = last_lines(self._printed)
        telling = [line for line in lines if any(word in line.lower() for word in ("assert", "error", "fatal"))]
        return (telling or lines or [""])[0][-200:]


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended without an answer (exit code {code})"
    try:
        return f"died of {signal.Signals(-code).name}"
    except ValueError:
        return f"died of signal {-code}"


@dataclass(frozen=True)
class Answer:
    """The outcome of one request.

    Attributes:
      value: what the handler returned; None if it failed.
      failure: empty, or `raised`, `died` or `timeout`.
      stage: the last stage that the handler entered.
      reason: why it failed.
      seconds: from the request to the answer.
    """

    value: Any = None
    failure: str = ""
    stage: str = ""
    reason: str = ""
    seconds: float = 0.0


class Workers:
    """Children of one service. They start when first needed, and end with this object or this process."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._children: list[Child] = []
        self._owner = os.getpid()
        self._failed_starts = 0
        self._finalizer = weakref.finalize(self, _end_all, self._children, self._owner)

    def close(self) -> None:
        """End the children; a later batch starts new ones."""
        _end_all(self._children, self._owner)

    def map(self, requests: Sequence[Any], workers: int = 1) -> list[Answer]:
        """Return the answers to requests, in their order, from at most `workers` children at a time.

        Raises:
          UserError: children cannot be started, or the target refuses its arguments.
        """
        if os.getpid() != self._owner:  # this process is a fork, and the children belong to its parent
            self.__init__(self._service)  # type: ignore[misc]
        answers: list[Answer | None] = [None] * len(requests)
        queue = deque(range(len(requests)))
        deaths: dict[int, int] = {}
        try:
            while left := len(queue) + sum(child.task is not None for child in self._children):
                self._resize(min(workers, left), workers)
                self._assign(queue, requests, deaths)
                for child in self._wait():
                    self._handle(child, queue, answers, deaths)
        except BaseException:  # Ctrl-C too: answers on their way must not be taken for later ones
            self.close()
            raise
        return [answer for answer in answers if answer is not None]

    def _resize(self, least: int, most: int) -> None:
        while len(self._children) < least:
            self._children.append(Child(self._service))
        for child in [child for child in self._children if child.task is None][: max(0, len(self._children) - most)]:
            self._end(child, dying=False)

    def _assign(self, queue: deque[int], requests: Sequence[Any], deaths: Mapping[int, int]) -> None:
        for child in [child for child in self._children if child.ready and child.task is None]:
            if not queue:
                return
            if queue[0] in deaths and child.used:  # an earlier request may have damaged it, so a new child takes over
                self._end(child, dying=False)
            elif child.send(queue[0], requests[queue[0]]):
                queue.popleft()
            else:  # it died while it was idle: the request is not to blame
                self._end(child)

    def _wait(self) -> list[Child]:
        """Wait until children have sent something or are late, and return those."""
        busy = [child for child in self._children if child.task is not None or not child.ready]
        left = min((child.deadline for child in busy), default=math.inf) - time.monotonic()
        ready: set[Connection] = set()
        if busy:
            ready = set(wait([child.connection for child in busy], max(0.0, left)))  # type: ignore[arg-type]
        now = time.monotonic()
        return [child for child in busy if child.connection in ready or child.deadline <= now]

    def _handle(self, child: Child, queue: deque[int], answers: list[Answer | None], deaths: dict[int, int]) -> None:
        late = not child.connection.poll()
        message = None if late else child.receive()
        if message is None:
            self._handle_end(child, late, queue, answers, deaths)
        elif message[0] == "stage":
            child.stage = message[1]
            child.set_limit(message[2])
        elif child.task is None:
            self._handle_start(child, message)
        else:
            done = message[0] == "done"
            seconds = time.monotonic() - child.since
            value, reason = (message[1], "") if done else (None, message[1])
            answers[child.task] = Answer(value, "" if done else "raised", child.stage, reason, seconds)
            child.task, child.used = None, True

    def _handle_start(self, child: Child, message: tuple[Any, ...]) -> None:
        if message[0] == "unfit":
            raise UserError(f"{self._service.title} cannot start: {message[1]}")
        child.ready, self._failed_starts = True, 0

    def _handle_end(
        self, child: Child, late: bool, queue: deque[int], answers: list[Answer | None], deaths: dict[int, int]
    ) -> None:
        task, stage, seconds = child.task, child.stage, time.monotonic() - child.since
        ending = self._end(child, dying=not late)
        if task is None:
            self._failed_starts += 1
            if late or self._failed_starts == _FAILED_STARTS:  # a start that took too long would do so again
                why = f"took more than {child.limit:g} s" if late else ending
                raise UserError(f"{self._service.title} cannot start: its process {why}")
        elif late:
            where = f" to {stage}" if stage else ""
            answers[task] = Answer(None, "timeout", stage, f"took more than {child.limit:g} s{where}", seconds)
        elif (count := deaths.get(task, 0) + (not child.used)) < (1 if child.exited else _KILLED):
            deaths[task] = count
            queue.appendleft(task)
        else:
            answers[task] = Answer(None, "died", stage, f"the process {ending}", seconds)

    def _end(self, child: Child, dying: bool = True) -> str:
        self._children.remove(child)
        return child.end(dying)


def _end_all(children: list[Child], owner: int) -> None:
    while children and os.getpid() == owner:
        children.pop().end()
