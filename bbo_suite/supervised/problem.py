"""The base of problems whose candidates are compiled by a real compiler in supervised children."""

from __future__ import annotations

import hashlib
import time
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.problem import Evaluations, Problem, Status
from ..errors import UserError
from .cache import COMPILE, PAIRS, PARTS, Cache, Outcome, PartRow, packed, unpacked
from .workers import Answer, Service, Workers

RUN = "run the result"
"""The stage in which the death of a child is a runtime error."""
_Result = tuple[float, int, str, bytes]
"""Cost, status, reason, and packed parts: none if they were not asked for."""
_STATUS = {status.word: status for status in Status}


class LiveProblem(Problem):
    """A problem whose candidates are evaluated by child processes.

    A subclass calls `_serve` in its constructor, and defines `request`, which turns a candidate into the request to a
    child. The handler in the child (see `Service`) returns a cost, or a pair of a cost and a remark, which becomes the
    row's reason, or a pair of a status as text and a reason. An exception is a compile error. So is the death of the
    child, unless it has entered the stage `run the result`: then it is a runtime error.

    If `tells_parts` is set, the handler also answers `(PARTS, request)`, with a pair: the answer to the request, and
    rows of parts, see `PartRow`. If `statistics` is set, it also answers `(COMPILE, request)`, with the numbers.
    """

    tells_parts: bool = False
    _digest: str = ""

    def _serve(self, service: Service, cache: Cache | None = None) -> None:
        """Set the service that answers requests. Give a cache only if a candidate always costs the same."""
        self._workers, self._cache = Workers(service), cache

    def _identify(self, content: str | bytes, compiler: str = "") -> None:
        """Set all that decides the costs, from which the fingerprint is made.

        Args:
          content: it includes the program, the parameters and the version of the compiler.
          compiler: name and version, under which costs are cached; empty if they vary, so that they are not.
        """
        data = content.encode() if isinstance(content, str) else content
        self._digest = hashlib.sha256(data).hexdigest()[:16]
        if compiler:
            self._cache = Cache(compiler, self._digest)

    def fingerprint(self) -> str:
        """Return a text that changes with what decides the costs, if the subclass has said that; see `Problem`."""
        return self._digest or super().fingerprint()

    def why_unversioned(self) -> str:
        """Return why the fingerprint cannot detect a change of the problem, so that runs cannot be resumed; else ""."""
        if self._digest or type(self).fingerprint is not LiveProblem.fingerprint:
            return ""
        return self._why_code_is_unversioned()

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
        return self._evaluated(configs, with_parts=False)

    def evaluate_parts(self, configs: NDArray) -> Evaluations:
        """Return the same with the costs of parts, if `tells_parts`."""
        return self._evaluated(configs, self.tells_parts)

    def _evaluated(self, configs: NDArray, with_parts: bool) -> Evaluations:
        started = time.perf_counter()
        requests = [self.request(config) for config in configs]
        unique = list(dict.fromkeys(requests))
        outcomes, own = self._outcomes(unique, with_parts)
        places = {request: i for i, request in enumerate(unique)}
        chosen = np.array([places[request] for request in requests])
        values = np.array([outcome[0] for outcome in outcomes])[chosen]
        status = np.array([outcome[1] for outcome in outcomes], np.int8)[chosen]
        reasons = {i: outcomes[place][2] for i, place in enumerate(chosen.tolist()) if outcomes[place][2]}
        parts = unpacked([outcomes[place][3] for place in chosen.tolist()]) if with_parts else None
        shares = own[chosen] + 1e-9
        return Evaluations(values, status, reasons, shares / shares.sum() * (time.perf_counter() - started), parts)

    def _outcomes(self, requests: Sequence[Any], with_parts: bool = False) -> tuple[list[_Result], NDArray[np.float64]]:
        """Return the outcome of each request, and the seconds that a child took: zero if the cache had it."""
        found = self._cached(requests, with_parts)
        missing = [i for i, outcome in enumerate(found) if outcome is None]
        asked = [(PARTS, requests[i]) if with_parts else requests[i] for i in missing]
        answers = self._answers(asked)
        seconds = np.zeros(len(requests))
        seconds[missing] = [answer.seconds for answer in answers]
        new = [self._evaluation(answer, with_parts) for answer in answers]
        for i, outcome in zip(missing, new, strict=True):
            found[i] = outcome
        if self._cache:  # failures are not stored: a crash or a delay may be the machine's fault
            lasting = [i for i, answer in zip(missing, answers, strict=True) if not answer.failure]
            self._cache.put([requests[i] for i in lasting], [found[i][:3] for i in lasting])
            if with_parts:
                self._cache.put_parts([requests[i] for i in lasting], [found[i][3] for i in lasting])
        return found, seconds

    def _answers(self, asked: Sequence[Any]) -> list[Answer]:
        """Return the answers of children to requests; a subclass may share out the work in another way."""
        return self._workers.map(asked, self.workers)

    def _cached(self, requests: Sequence[Any], with_parts: bool) -> list[Any]:
        if not self._cache:
            return [None] * len(requests)
        outcomes = self._cache.get(requests)
        parts = self._cache.get_parts(requests) if with_parts else [b""] * len(requests)
        pairs = zip(outcomes, parts, strict=True)
        return [None if outcome is None or packs is None else (*outcome, packs) for outcome, packs in pairs]

    def _evaluation(self, answer: Answer, with_parts: bool) -> _Result:
        value, rows = answer.value if with_parts and not answer.failure else (answer.value, ())
        return *_outcome(answer, value), self._packed(rows) if rows else b""

    def _packed(self, rows: Sequence[PartRow]) -> bytes:
        """Return rows of parts as they are kept."""
        return packed(self.fingerprint(), rows)

    def compile(self, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(n, k)` statistics of `(n, d)` candidates from `workers` children; nan where one failed."""
        requests = [self.request(config) for config in configs]
        unique = list(dict.fromkeys(requests))
        answers = self._workers.map([(COMPILE, request) for request in unique], self.workers)
        nothing = (np.nan,) * len(self.statistics)
        told = {r: nothing if answer.failure else answer.value for r, answer in zip(unique, answers, strict=True)}
        return np.array([told[request] for request in requests], np.float64).reshape(-1, len(nothing))

    def _ratios(self, ours: Any, theirs: Any, first: int, count: int, reference: str = "") -> list[float]:  # noqa: ANN401 - requests
        """Return logarithms of ratios of two requests, measured in turns by a child that answers `PAIRS`."""
        (answer,) = self._workers.map([(PAIRS, ours, theirs, first, count)])
        if answer.failure:
            return [np.inf]
        if isinstance(answer.value, tuple):
            raise UserError(f"problem {self.id}: {reference or 'the candidate to compare with'}: {answer.value[1]}")
        return list(answer.value)

    def query(self, request: Any) -> Any:  # noqa: ANN401 - whatever the handler knows
        """Return a child's answer to a request that is not a candidate.

        Raises:
          UserError: the child failed.
        """
        (answer,) = self._workers.map([request])
        if answer.failure:
            raise UserError(f"problem {self.id or type(self).__name__}: {answer.reason}")
        return answer.value


def _outcome(answer: Answer, value: Any) -> Outcome:  # noqa: ANN401 - what the handler returned
    if not answer.failure and isinstance(value, tuple):
        word, reason = value
        if not isinstance(word, str):
            return float(word), int(Status.OK), str(reason)
        return np.inf, int(_STATUS[word]), str(reason)
    if not answer.failure:
        return float(value), int(Status.OK), ""
    died = Status.RUNTIME_ERROR if answer.stage == RUN else Status.COMPILE_ERROR
    status = {"timeout": Status.TIMEOUT, "died": died}.get(answer.failure, Status.COMPILE_ERROR)
    return np.inf, int(status), answer.reason
