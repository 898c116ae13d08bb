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
from .cache import Cache
from .process import Service
from .workers import Answer, Workers

RUN = "run the result"
"""The stage in which a death is a runtime error."""
Outcome = tuple[float, int, str]
"""Cost, status, reason: plain numbers and text, for the cache."""
_WORDS = {status.word: status for status in Status}


class LiveProblem(Problem):
    """A problem whose constructor calls `_serve`, and that says what to ask for a candidate.

    The handler in the child (see `Service`) returns a cost, a pair of a cost and a remark, which stands in the row's
    reason, or a pair of a status in words and a reason; what it raises is a compile error, and so is its death, unless
    it had entered the stage `run the result`.
    """

    def _serve(self, service: Service, cache: Cache | None = None) -> None:
        """Set what answers requests; a cache is only for costs that never differ."""
        self._workers, self._cache = Workers(service), cache

    def leave_cache(self) -> None:
        """Have every candidate compiled from now on: what the cache holds is neither used nor changed."""
        self._cache = None

    @abstractmethod
    def request(self, config: NDArray) -> Any:  # noqa: ANN401 - whatever the handler takes
        """Return what to ask a child for a candidate: hashable, with a `repr` that tells its content."""

    def evaluate(self, configs: NDArray) -> Evaluations:
        """Return the costs of `(n, d)` candidates, from the cache or from `workers` children.

        `seconds` are shares of the time that the batch took, so they add up to it for any number of children.
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
        """Return what becomes of each request and the seconds that it took a child; none if it was known."""
        found: list[Any] = self._cache.get(requests) if self._cache else [None] * len(requests)
        missing = [i for i, outcome in enumerate(found) if outcome is None]
        answers = self._workers.map([requests[i] for i in missing], self.workers)
        seconds = np.zeros(len(requests))
        seconds[missing] = [answer.seconds for answer in answers]
        for i, answer in zip(missing, answers, strict=True):
            found[i] = _outcome(answer)
        if self._cache:  # a child's death or delay may have been the machine's fault
            lasting = [i for i, answer in zip(missing, answers, strict=True) if not answer.failure]
            self._cache.put([requests[i] for i in lasting], [found[i] for i in lasting])
        return found, seconds

    def ask(self, request: Any) -> Any:  # noqa: ANN401 - whatever the handler knows
        """Return a child's answer to a request that is no candidate.

        Raises:
          UserError: it has none.
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
        return np.inf, int(_WORDS[word]), str(reason)
    if not answer.failure:
        return float(answer.value), int(Status.OK), ""
    died = Status.RUNTIME_ERROR if answer.stage == RUN else Status.COMPILE_ERROR
    status = {"timeout": Status.TIMEOUT, "died": died}.get(answer.failure, Status.COMPILE_ERROR)
    return np.inf, int(status), answer.reason
