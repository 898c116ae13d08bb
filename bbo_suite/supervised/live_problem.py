"""The base of problems whose candidates are compiled by a real compiler in supervised children."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.problem import Evaluations, Problem, Status
from ..errors import UserError
from .cache import Cache, Outcome
from .process import Service
from .workers import Answer, Workers

RUN = "run the result"
"""The stage in which the death of a child is a runtime error."""
_STATUS = {status.word: status for status in Status}


class LiveProblem(Problem):
    """A problem whose candidates are evaluated by child processes.

    A subclass calls `_serve` in its constructor, and defines `request`, which turns a candidate into the request to a
    child. The handler in the child (see `Service`) returns a cost, or a pair of a cost and a remark, which becomes the
    row's reason, or a pair of a status as text and a reason. An exception is a compile error. So is the death of the
    child, unless it has entered the stage `run the result`: then it is a runtime error.
    """

    def _serve(self, service: Service, cache: Cache | None = None) -> None:
        """Set the service that answers requests. Give a cache only if a candidate always costs the same."""
        self._workers, self._cache = Workers(service), cache

    def leave_cache(self) -> None:
        """Compile every candidate from now on: the cache is neither read nor written."""
        self._cache = None

    @abstractmethod
    def request(self, config: NDArray) -> Any:  # noqa: ANN401 - whatever the handler takes
        """Return the request for a `(d,)` candidate: hashable, and with a `repr` that shows its whole content."""

    def evaluate(self, configs: NDArray) -> Evaluations:
        """Return the costs of `(n, d)` candidates, from the cache or from `workers` children.

        The `seconds` of a batch add up to the time that it took, for any number of children.
        """
        started = time.perf_counter()
        requests = [self.request(config) for config in configs]
        unique = list(dict.fromkeys(requests))
        outcomes, own = self._outcomes(unique)
        places = {request: i for i, request in enumerate(unique)}
        chosen = np.array([places[request] for request in requests])
        values = np.array([value for value, _, _ in outcomes])[chosen]
        status = np.array([status for _, status, _ in outcomes], np.int8)[chosen]
        reasons = {i: outcomes[place][2] for i, place in enumerate(chosen.tolist()) if outcomes[place][2]}
        shares = own[chosen] + 1e-9
        return Evaluations(values, status, reasons, shares / shares.sum() * (time.perf_counter() - started))

    def _outcomes(self, requests: Sequence[Any]) -> tuple[list[Outcome], NDArray[np.float64]]:
        """Return the outcome of each request, and the seconds that a child took: zero if the cache had it."""
        found: list[Any] = self._cache.get(requests) if self._cache else [None] * len(requests)
        missing = [i for i, outcome in enumerate(found) if outcome is None]
        answers = self._workers.map([requests[i] for i in missing], self.workers)
        seconds = np.zeros(len(requests))
        seconds[missing] = [answer.seconds for answer in answers]
        for i, answer in zip(missing, answers, strict=True):
            found[i] = _outcome(answer)
        if self._cache:  # failures are not stored: a crash or a delay may be the machine's fault
            lasting = [i for i, answer in zip(missing, answers, strict=True) if not answer.failure]
            self._cache.put([requests[i] for i in lasting], [found[i] for i in lasting])
        return found, seconds

    def ask(self, request: Any) -> Any:  # noqa: ANN401 - whatever the handler knows
        """Return a child's answer to a request that is not a candidate.

        Raises:
          UserError: the child failed.
        """
        (answer,) = self._workers.map([request])
        if answer.failure:
            raise UserError(f"problem {self.id or type(self).__name__}: {answer.reason}")
        return answer.value


def _outcome(answer: Answer) -> Outcome:
    if not answer.failure and isinstance(answer.value, tuple):
        word, reason = answer.value
        if not isinstance(word, str):
            return float(word), int(Status.OK), str(reason)
        return np.inf, int(_STATUS[word]), str(reason)
    if not answer.failure:
        return float(answer.value), int(Status.OK), ""
    died = Status.RUNTIME_ERROR if answer.stage == RUN else Status.COMPILE_ERROR
    status = {"timeout": Status.TIMEOUT, "died": died}.get(answer.failure, Status.COMPILE_ERROR)
    return np.inf, int(status), answer.reason
