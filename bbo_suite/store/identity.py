"""What identifies a run (`run.json`), the checks that no other run is in its place, and how it ended (`end.json`)."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..core.level import LEVEL, Level
from ..errors import UserError
from ..files.reading import DamagedFile, read_json
from ..files.writing import write_json
from .folders import END, RUN, has_begun, has_ended, has_rows, runs_in

IMPORTED = "imported"
"""The key of `run.json` that says where a run was imported from."""

CODE, UNVERSIONED = "code", "unversioned"
"""Keys of `run.json`: the version of a strategy's code outside this distribution; why there is no version."""

NOISY = "noisy"
"""The key of `run.json` that is true if the problem's costs vary."""

BASELINES = "baselines"
"""The optional key of `run.json` with the costs that the problem knows besides the default's, by name."""

PAIRS = "pairs"
"""The key of `end.json` with the number of pairs that were measured again; older ones lack it."""

PRICE = "price"
"""The key of `end.json` with the gain of an evaluation that was asked for, of a run that ended because of it."""

BOUND, PUBLISHED_IN = "bound", "published_in"
"""Optional keys of `run.json`: the cost that no candidate is below; where that and the baselines are published."""

CHECK = "check"
"""The key of `run.json` with a checksum of all others; runs of before have none."""


def _is_number(fact: object) -> bool:
    return isinstance(fact, (int, float)) and not isinstance(fact, bool) and abs(fact) <= sys.float_info.max


def _may_be_optimum(fact: object) -> bool:
    """Return whether something is a cost, or what a problem without an optimum may say."""
    return fact is None or isinstance(fact, float) or _is_number(fact)


def is_count(fact: object, least: int = 1) -> bool:
    """Return whether something that a file holds is a whole number of 64 bits, and not below `least`."""
    return isinstance(fact, int) and not isinstance(fact, bool) and least <= fact < 1 << 63


def _is_of(kind: type) -> Callable[[Any], bool]:
    return lambda fact: isinstance(fact, kind)


_NEEDED: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("problem", "fingerprint", "strategy"), lambda fact: isinstance(fact, str) and fact != ""),
    **dict.fromkeys(("budget", "batch"), is_count),
    "seed": lambda fact: is_count(fact, least=0),
    **{"unit": _is_of(str), "options": _is_of(dict), LEVEL: _is_of(str)},
    "default": lambda fact: _is_number(fact) and fact > 0,
}
_OPTIONAL: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("optimum", BOUND), _may_be_optimum),
    BASELINES: lambda fact: isinstance(fact, dict) and all(map(_is_number, fact.values())),
    **dict.fromkeys((IMPORTED, "versions", "machine"), _is_of(dict)),
    **dict.fromkeys((CODE, UNVERSIONED, PUBLISHED_IN, CHECK), _is_of(str)),
    **dict.fromkeys((NOISY, "plain_seeds"), _is_of(bool)),
    **dict.fromkeys(("parameters", "candidates"), is_count),
}
"""The keys of `run.json` and what their values must be; `read_head` adds what older runs lack."""

OTHER_CONTENT = "the program or its compiler's version has changed"
"""Why the fingerprint of a problem differs, for messages."""


@dataclass(frozen=True)
class Run:
    """What identifies a run; equal runs give equal rows.

    Attributes:
      problem: its id.
      fingerprint: the hash of the problem's content.
      strategy: its id.
      options: the fields of the strategy's options.
      seed, budget: of the run.
      batch: the number of candidates that the strategy is asked for at a time.
      plain_seeds: the random draws follow from the seed alone.
    """

    problem: str
    fingerprint: str
    strategy: str
    options: dict[str, Any]
    seed: int
    budget: int
    batch: int
    plain_seeds: bool = False

    @classmethod
    def of(cls, head: Mapping[str, Any]) -> Run:
        """Return the run that the content of a `run.json` describes."""
        return cls(**{field.name: head[field.name] for field in dataclasses.fields(cls) if field.name in head})

    def identity(self) -> dict[str, Any]:
        """Return the run as it is stored and compared, as JSON holds it, so that a tuple equals its list."""
        found = json.loads(json.dumps(dataclasses.asdict(self)))
        return found if self.plain_seeds else {key: value for key, value in found.items() if key != "plain_seeds"}

    def generator(self) -> np.random.Generator:
        """Return the run's only source of randomness, initialised with a hash of its identity, or with its seed."""
        if self.plain_seeds:
            return np.random.default_rng(self.seed)
        text = json.dumps(self.identity(), sort_keys=True)
        return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(text.encode()).digest())))


def write_head(path: Path, head: Mapping[str, Any]) -> None:
    """Write the `run.json` in a run's folder, with its checksum.

    Raises:
      OSError: it cannot be written.
    """
    write_json(path / RUN, with_checksum(head))


def with_checksum(head: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a `run.json` as it is stored."""
    content = json.loads(json.dumps(head))
    return content | {CHECK: _checksum(content)}


def _checksum(head: Mapping[str, Any]) -> str:
    content = {key: value for key, value in head.items() if key != CHECK}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def wrong_fact(head: Mapping[str, Any]) -> str:
    """Return the key of a fact that no run has: it is missing, or its value is of the wrong type; "" if there is none.

    The default's cost must be finite and above 0.
    """
    wrong = (key for key, fits in _NEEDED.items() if not fits(head.get(key)))
    return next(wrong, "") or next((key for key, fits in _OPTIONAL.items() if key in head and not fits(head[key])), "")


def read_head(path: Path) -> dict[str, Any]:
    """Return the content of the `run.json` in a run's folder, without its checksum.

    Raises:
      DamagedFile: it is damaged or was changed, or lacks a required key.
      UserError: it is missing or cannot be read.
    """
    head, remedy = read_json(path / RUN), "restore it, or delete it and run the study again"
    if head.get(CHECK, checksum := _checksum(head)) != checksum:
        raise DamagedFile(f"{path / RUN} was changed after it was written: its checksum does not match; {remedy}")
    try:
        head[LEVEL] = Level.of(head).word
    except ValueError as error:
        raise DamagedFile(f"{error} in {path / RUN}; {remedy}") from None
    if wrong := wrong_fact(head):
        what = f"is {str(head[wrong])[:40]!r}, which it cannot be," if wrong in head else "is missing"
        raise DamagedFile(f"{wrong!r} {what} in {path / RUN}; {remedy}")
    head.pop(CHECK, None)
    return head


def stored_head(path: Path) -> dict[str, Any] | None:
    """Return the content of the `run.json` in a run's folder; None if it is missing or damaged.

    Raises:
      UserError: it cannot be read.
    """
    try:
        return read_head(path) if has_begun(path) else None
    except DamagedFile:
        return None


def known_speedups(head: Mapping[str, Any]) -> dict[str, float]:
    """Return the speedups over the default, by name, of the baselines and the optimum, or else bound, in `run.json`."""
    costs = dict(head.get(BASELINES) or {})
    for name in ("optimum", BOUND):
        if head.get(name) is not None:
            costs[name] = head[name]
            break
    return {str(name): float(head["default"]) / cost for name, cost in costs.items() if cost > 0}


def check_identity(path: Path, identity: Mapping[str, Any], code: str | None = None) -> None:
    """Check that a folder holds no rows yet, or those of the same run, as far as its `run.json` tells.

    Args:
      code: the version of the strategy's code, if it is not part of this distribution.

    Raises:
      UserError: it holds another run, and the message names what differs; or a run that cannot be resumed.
    """
    stored = stored_head(path)
    if stored is None:
        return
    if source := stored.get(IMPORTED):
        where = f"{path} was imported from {source.get('source')}"
        raise UserError(f"{where} and cannot be resumed; choose another --study")
    if not has_rows(path):
        return
    for key, value in {"plain_seeds": None, **identity}.items():
        if stored.get(key) != value:
            there, here = json.dumps(stored.get(key)), json.dumps(value)
            why = f" ({OTHER_CONTENT})" if key == "fingerprint" else ""
            what = f"a run with {key} {there}, not {here}{why}"
            raise UserError(f"{path} holds {what}; choose another --study, or delete it")
    _check_code(path, stored, code)


def _check_code(path: Path, stored: Mapping[str, Any], code: str | None) -> None:
    advice = "its rows can be read, but not continued: choose another --study, or delete it"
    if why := stored.get(UNVERSIONED):
        raise UserError(f"{path} cannot be resumed, because {why}; {advice}")
    if code is not None and CODE not in stored:
        raise UserError(f"{path} has no version of the code of strategy {stored['strategy']}; {advice}")
    if code is not None and stored[CODE] != code:
        raise UserError(f"{path} was made with other code of strategy {stored['strategy']}; {advice}")


def check_contents(study: Path, fingerprints: Mapping[str, str]) -> None:
    """Check that the runs in a study's folder, but for damaged ones, were made with the problems as they are now.

    Args:
      fingerprints: of the problems, by id; runs of other problems are not checked.

    Raises:
      UserError: a run was made with another content of its problem.
    """
    for path in filter(has_rows, runs_in(study)):
        stored = stored_head(path) or {}
        here, there = fingerprints.get(stored.get("problem", "")), stored.get("fingerprint")
        if here not in (None, there):
            what = f"{stored['problem']} with content {there}, which is not comparable to content {here}"
            raise UserError(f"{path} is of {what}; choose another --study")


def read_end(path: Path) -> dict[str, Any] | None:
    """Return the content of the `end.json` in a run's folder; None if the run has not ended.

    Raises:
      DamagedFile: it is damaged.
      UserError: it cannot be read.
    """
    end = read_json(path / END) if has_ended(path) else None
    if end is not None and not (
        is_count(end.get("evaluations"), least=0)
        and isinstance(end.get("reason", ""), str)
        and _is_number(end.get(PRICE, 0))
    ):
        raise DamagedFile(f"{path / END} does not say when and why a run ended; delete it and run the study again")
    return end


def complete(path: Path, evaluations: int) -> bool:
    """Return whether the run of a folder has ended and all of its rows are still there."""
    return end_reason(path, evaluations) is not None


def end_reason(path: Path, evaluations: int) -> str | None:
    """Return why a complete run ended; None if it is not complete.

    A damaged `end.json` counts as none, for a replay of the rows writes it again.
    """
    try:
        end = read_end(path)
    except DamagedFile:
        return None
    return str(end.get("reason", "")) if end and end["evaluations"] == evaluations else None
