"""The output of the Kernel Tuning Toolkit."""

from __future__ import annotations

from typing import Any

import numpy as np

from bbo_suite import Status

from .fields import get, number, per_second
from .table import Outcomes, Recording, recording

_STATUS = {
    "Ok": Status.OK,
    "CompilationFailed": Status.COMPILE_ERROR,
    "ComputationFailed": Status.RUNTIME_ERROR,
    "DeviceLimitsExceeded": Status.RUNTIME_ERROR,
    "ValidationFailed": Status.WRONG_RESULT,
}


def read(document: dict[str, Any]) -> Recording:
    """Return the recording of an output file; the cost is the total duration, in seconds.

    Raises:
      ValueError: it is not output of KTT, or damaged; the message says where.
    """
    metadata, results = (get(document, key, kind, "the file") for key, kind in (("Metadata", dict), ("Results", list)))
    divisor = per_second(get(metadata, "TimeUnit", str, "'Metadata'"), "'TimeUnit'")
    configs = [_config(row, f"result {i}") for i, row in enumerate(results)]
    names = list(configs[0]) if configs else []
    for i, config in enumerate(configs):
        if config.keys() != configs[0].keys():
            raise ValueError(f"result {i} has other parameters than result 0; give all results the same parameters")
    outcomes = [_outcome(row, f"result {i}", divisor) for i, row in enumerate(results)]
    measured = Outcomes(
        np.array([cost for cost, *_ in outcomes]), np.array([o[1] for o in outcomes], np.int8), [o[2] for o in outcomes]
    )
    facts = {"format": "KTT output", **({"device": str(metadata["Device"])} if "Device" in metadata else {})}
    return recording(names, [[config[name] for config in configs] for name in names], measured, facts=facts)


def _config(row: Any, place: str) -> dict[str, Any]:  # noqa: ANN401 - JSON
    pairs = get(row, "Configuration", list, place)
    config = {get(pair, "Name", str, f"a parameter of {place}"): pair.get("Value") for pair in pairs}
    if len(config) < len(pairs):
        raise ValueError(f"{place} names a parameter twice")
    return config


def _outcome(row: dict[str, Any], place: str, divisor: float) -> tuple[float, int, str]:
    word = get(row, "Status", str, place)
    if word not in _STATUS:
        raise ValueError(f"'Status' of {place} is {word[:40]!r}, none of {', '.join(_STATUS)}")
    if _STATUS[word] is not Status.OK:
        return np.inf, _STATUS[word], word
    return number(row.get("TotalDuration"), f"'TotalDuration' of {place}") / divisor, Status.OK, ""
