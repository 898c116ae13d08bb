"""Kernel Tuner's cache: JSON that is appended to during tuning, so that an interrupted one is not complete."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from bbo_suite import Status
from bbo_suite.files.reading import parse_json

from .fields import get, is_failure, noise, number, texts, version
from .table import Outcomes, Recording, recording

_FAILURES = {"CompilationFailedConfig": Status.COMPILE_ERROR, "InvalidConfig": Status.FORBIDDEN}
"""Class names that replace a time, and their status; others, such as RuntimeFailedConfig, are runtime errors."""
_CUT = "bbo_suite: cut off"


def read(document: dict[str, Any]) -> Recording:
    """Return the recording of a cache (schema 1, or older without a version); times are milliseconds.

    Raises:
      ValueError: it is not a cache, or damaged; the message says where.
    """
    version(document, "1.0.0")
    names = texts(get(document, "tune_params_keys", list, "the file"), "'tune_params_keys'")
    cache = get(document, "cache", dict, "the file")
    if document.get("objective", "time") != "time":
        wanted = str(document["objective"])[:40]
        raise ValueError(f"its objective is {wanted!r}, not 'time'; set it to 'time' if its rows have times")
    outcomes = [_outcome(row, f"row {key[:60]!r}") for key, row in cache.items()]
    columns = [[_value(row, name, key) for key, row in cache.items()] for name in names]
    costs, status, reasons = zip(*outcomes, strict=True) if outcomes else ((), (), ())
    facts = {
        "format": "Kernel Tuner cache",
        **{word: str(document[key]) for word, key in _FACTS.items() if document.get(key)},
        **({"cut off": "yes; the last row is incomplete and left out"} if document.get(_CUT) else {}),
        **noise([row.get("times") for row in cache.values()], "the 'times' of a row"),
    }
    return recording(names, columns, Outcomes(np.array(costs), np.array(status, np.int8), reasons), facts=facts)


_FACTS = {"device": "device_name", "kernel": "kernel_name", "problem size": "problem_size"}


def _value(row: dict[str, Any], name: str, key: str) -> Any:  # noqa: ANN401 - JSON
    if name not in row:
        raise ValueError(f"row {key[:60]!r} has no value of parameter {name!r}")
    return row[name]


def _outcome(row: Any, place: str) -> tuple[float, int, str]:  # noqa: ANN401 - JSON
    if not isinstance(row, dict):
        raise ValueError(f"{place} is not an object")
    failure = row.get("__error__") or row.get("time")
    if isinstance(failure, str):
        if not failure.isidentifier():
            raise ValueError(f"'time' of {place} is the text {failure[:40]!r}, neither a number nor a kind of failure")
        return np.inf, _FAILURES.get(failure, Status.RUNTIME_ERROR), failure
    cost = number(row.get("time"), f"'time' of {place}")
    if is_failure(cost):
        return np.inf, Status.RUNTIME_ERROR, f"a time of {cost:g} ms stands for a failure"
    return cost / 1e3, Status.OK, ""


def complete_rows(text: str) -> dict[str, Any] | None:
    """Return the complete rows of a truncated cache; None if the text is something else, or damaged elsewhere."""
    start = re.search(r'"cache"\s*:\s*\{', text)
    if start is None:
        return None
    decoder, at = json.JSONDecoder(), start.end()
    document: dict[str, Any] = {}
    rows: dict[str, Any] = {}
    try:
        document = parse_json(text[:at] + "}}")
        while entry := _ENTRY.match(text, at):
            key, _ = decoder.raw_decode(entry[1])
            rows[key], at = decoder.raw_decode(text, entry.end())
    except ValueError:
        pass  # nothing more can be read; the rest tells whether the file is truncated or damaged
    rest = text[at:].strip("}, \n\r\t")
    if not document or (rest and "}" in text[at:]):  # more than one incomplete row is unreadable
        return None
    return document | {"cache": rows, _CUT: True}


_ENTRY = re.compile(r'[\s,]*("(?:[^"\\]|\\.)*")\s*:\s*(?=\{)')
