"""Kernel Tuner's cache: JSON that grows while it measures, so that an interrupted one has no end."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from bbo_suite import Status

from .fields import get, is_failure, noise, number, texts, version
from .table import Measured, Recording, recording

_FAILURES = {"CompilationFailedConfig": Status.COMPILE_ERROR, "InvalidConfig": Status.FORBIDDEN}
"""What class names mean that stand in the place of a time; others, as RuntimeFailedConfig, are runtime errors."""
_CUT = "bbo_suite: cut off"


def read(document: dict[str, Any]) -> Recording:
    """Return the recording of a cache (schema 1, and what came before it had a version); times are milliseconds.

    Raises:
      ValueError: it is none, or damaged; the message says where.
    """
    version(document, "1.0.0")
    names = texts(get(document, "tune_params_keys", list, "the file"), "'tune_params_keys'")
    cache = get(document, "cache", dict, "the file")
    if document.get("objective", "time") != "time":
        wanted = str(document["objective"])[:40]
        raise ValueError(f"its objective is {wanted!r}; set it to 'time', which is what is read, if its rows hold that")
    outcomes = [_outcome(row, f"row {key[:60]!r}") for key, row in cache.items()]
    columns = [[_value(row, name, key) for key, row in cache.items()] for name in names]
    costs, status, reasons = zip(*outcomes, strict=True) if outcomes else ((), (), ())
    facts = {
        "format": "Kernel Tuner cache",
        **{word: str(document[key]) for word, key in _FACTS.items() if document.get(key)},
        **({"cut off": "yes; the last row, which was not whole, is left out"} if document.get(_CUT) else {}),
        **noise([row.get("times") for row in cache.values()], "the 'times' of a row"),
    }
    return recording(names, columns, Measured(np.array(costs), np.array(status, np.int8), reasons), facts=facts)


_FACTS = {"device": "device_name", "kernel": "kernel_name", "problem size": "problem_size"}


def _value(row: dict[str, Any], name: str, key: str) -> Any:  # noqa: ANN401 - JSON
    if name not in row:
        raise ValueError(f"row {key[:60]!r} has no value of parameter {name!r}")
    return row[name]


def _outcome(row: Any, place: str) -> tuple[float, int, str]:  # noqa: ANN401 - JSON
    if not isinstance(row, dict):
        raise ValueError(f"{place} is no object")
    failure = row.get("__error__") or row.get("time")
    if isinstance(failure, str):
        if not failure.isidentifier():
            raise ValueError(f"'time' of {place} is the text {failure[:40]!r}, neither a number nor a kind of failure")
        return np.inf, _FAILURES.get(failure, Status.RUNTIME_ERROR), failure
    cost = number(row.get("time"), f"'time' of {place}")
    if is_failure(cost):
        return np.inf, Status.RUNTIME_ERROR, f"a time of {cost:g} ms stands for a failure"
    return cost / 1e3, Status.OK, ""


def rescued(text: str) -> dict[str, Any] | None:
    """Return what is whole of a cache that is cut off; None if the text is something else, or damaged inside."""
    start = re.search(r'"cache"\s*:\s*\{', text)
    if start is None:
        return None
    decoder, at = json.JSONDecoder(), start.end()
    document: dict[str, Any] = {}
    rows: dict[str, Any] = {}
    try:
        document = json.loads(text[:at] + "}}")
        while entry := _ENTRY.match(text, at):
            key, _ = decoder.raw_decode(entry[1])
            rows[key], at = decoder.raw_decode(text, entry.end())
    except ValueError:
        pass  # the end of what can be read; whether that is a cut is judged by what is left
    rest = text[at:].strip("}, \n\r\t")
    if not document or (rest and "}" in text[at:]):  # more than the beginning of one row is unreadable
        return None
    return document | {"cache": rows, _CUT: True}


_ENTRY = re.compile(r'[\s,]*("(?:[^"\\]|\\.)*")\s*:\s*(?=\{)')
