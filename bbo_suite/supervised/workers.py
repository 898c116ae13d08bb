"""Several supervised children that serve one batch.

Why not a library's pool: those of the standard library and loky give up the whole pool when one process dies, and
cannot end a task that takes too long. Compilers crash and hang often, and each time it must cost one candidate only.
"""

from __future__ import annotations

import math
import os
import time
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from ..errors import UserError
from .process import Child, Service

_KILLED = 3
"""New children that signals must end during a request until it counts as failed: signals may come from outside."""
_FAILED_STARTS = 3
"""Failed starts in a row after which the service gives up."""


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
        except BaseException:  # Ctrl-C too: answers that are under way now must not be taken for later ones
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
            elif child.ask(queue[0], requests[queue[0]]):
                queue.popleft()
            else:  # it died while it was idle: the request is not to blame
                self._end(child)

    def _wait(self) -> list[Child]:
        """Wait until children have sent something or are late, and return those."""
        busy = [child for child in self._children if child.task is not None or not child.ready]
        patience = min((child.deadline for child in busy), default=math.inf) - time.monotonic()
        speaking: set[Connection] = set()
        if busy:
            speaking = set(wait([child.connection for child in busy], max(0.0, patience)))  # type: ignore[arg-type]
        now = time.monotonic()
        return [child for child in busy if child.connection in speaking or child.deadline <= now]

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
