"""T4, the results format of the auto-tuning community (schema 1.0.0, github.com/odgaard/TuningSchema)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bbo_suite import Status
from bbo_suite.recording.files import INVALIDITY

from .fields import SECONDS, get, is_failure, noise, number, per_second, version
from .table import Outcomes, Recording, recording

_STATUS = {word: status for status, word in INVALIDITY.items()}


def read(document: dict[str, Any]) -> Recording:
    """Return the recording of a results file. Only the first objective is read. Times become seconds.

    Raises:
      ValueError: it is not a T4 results file, or is damaged; the message says where.
    """
    version(document, "1.0.0")
    results, metadata = get(document, "results", list, "the file"), document.get("metadata", {})
    if not isinstance(metadata, dict):
        raise ValueError("'metadata' of the file is not an object")
    configs = [get(row, "configuration", dict, f"result {i}") for i, row in enumerate(results)]
    names = list(configs[0]) if configs else []
    for i, config in enumerate(configs):
        if config.keys() != configs[0].keys():
            raise ValueError(f"result {i} has other parameters than result 0; give all results the same parameters")
    outcomes = [_outcome(row, f"result {i}") for i, row in enumerate(results)]
    units = {unit for cost, _, _, unit in outcomes if np.isfinite(cost)} or {""}
    if len(units) > 1:
        raise ValueError(f"its results have several units, {sorted(units)}; convert them to one")
    costs = np.array([cost for cost, *_ in outcomes])
    divisor, unit = _unit(units.pop(), metadata) if np.isfinite(costs).any() else (1.0, "seconds")
    costs /= divisor
    measured = Outcomes(costs, np.array([o[1] for o in outcomes], np.int8), [o[2] for o in outcomes])
    columns = [[config[name] for config in configs] for name in names]
    default = get(metadata, "default", dict, "'metadata'") if "default" in metadata else None
    repeats = [get(row, "times", dict, f"result {i}").get("runtimes") for i, row in enumerate(results)]
    facts = {"format": "T4"} | _provenance(metadata) | noise(repeats, "the 'runtimes' of a result")
    return recording(names, columns, measured, unit, default, facts)


def _provenance(metadata: Mapping[str, Any]) -> dict[str, str]:
    facts = metadata.get("facts", {})
    known = ("problem", "fingerprint", "sample", "made by")
    listed = {key: metadata[key] for key in known if metadata.get(key)} | (facts if isinstance(facts, dict) else {})
    return {f"recorded {key}": str(value)[:200] for key, value in listed.items()}


def _unit(unit: str, metadata: Mapping[str, Any]) -> tuple[float, str]:
    """Return the divisor of costs and the unit of the quotient: seconds for times, other units unchanged."""
    if unit and unit.strip().lower() not in SECONDS:
        return 1.0, unit
    named = unit or metadata.get("timeunit")
    if named is None and isinstance(metadata.get("unit"), str) and metadata["unit"]:
        return _unit(metadata["unit"], metadata)
    if not isinstance(named, str):
        raise ValueError('it has no unit of time; add "metadata": {"timeunit": "milliseconds"}, or another unit')
    return per_second(named, "'timeunit'"), "seconds"


def _outcome(row: dict[str, Any], place: str) -> tuple[float, int, str, str]:
    """Return cost, status, reason and unit."""
    word = get(row, "invalidity", str, place)
    if word not in _STATUS:
        raise ValueError(f"'invalidity' of {place} is {word[:40]!r}, none of {', '.join(_STATUS)}")
    status, measurement = _STATUS[word], _measurement(row, place)
    value, unit = measurement.get("value"), measurement.get("unit", "")
    if status is not Status.OK:
        return np.inf, status, value if isinstance(value, str) and value else word, ""
    if row.get("correctness", 1) == 0:
        return np.inf, Status.WRONG_RESULT, "its correctness is 0", ""
    if not isinstance(unit, str):
        raise ValueError(f"the unit of {place} is not a text")
    if not unit and measurement.get("name", "time") != "time":
        raise ValueError(
            f"{place} measures {str(measurement['name'])[:40]!r} without a unit; name a unit in which lower is better"
        )
    cost = number(value, f"the value of {place}")
    if is_failure(cost):
        return np.inf, Status.RUNTIME_ERROR, f"a time of {cost:g} stands for a failure", ""
    return cost, Status.OK, "", unit


def _measurement(row: dict[str, Any], place: str) -> dict[str, Any]:
    """Return the measurement of the first objective; if there is none, the mean of the run times."""
    measurements = get(row, "measurements", list, place) if "measurements" in row else []
    wanted = get(row, "objectives", list, place)[:1] if "objectives" in row else []
    for measurement in measurements:
        if not wanted or get(measurement, "name", str, f"a measurement of {place}") == wanted[0]:
            return get({"it": measurement}, "it", dict, f"a measurement of {place}")
    if wanted not in ([], ["time"]) and row["invalidity"] == "correct":
        raise ValueError(f"{place} has no measurement of its objective {str(wanted[0])[:40]!r}")
    times = get(row, "times", dict, place).get("runtimes")
    if not times:
        return {}
    if not isinstance(times, list):
        raise ValueError(f"'runtimes' of {place} is not a list")
    return {"value": float(np.mean([number(time, f"a run time of {place}") for time in times]))}
