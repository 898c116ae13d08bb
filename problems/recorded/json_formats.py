"""Measurements in JSON: the cache of Kernel Tuner, the output of KTT, and T4, the auto-tuning community's format."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bbo_suite import Status
from bbo_suite.files.reading import parse_json
from bbo_suite.recording.files import INVALIDITY

from .fields import SECONDS, Unit, cost_unit, finite, get, is_failure, noise, number, per_second, texts, version
from .table import Outcomes, Recording, recording

_FAILURES = {"CompilationFailedConfig": Status.COMPILE_ERROR, "InvalidConfig": Status.FORBIDDEN}
"""Class names that replace a time, and their status; others, such as RuntimeFailedConfig, are runtime errors."""
_CUT = "bbo_suite: cut off"


def read_kernel_tuner(document: dict[str, Any]) -> Recording:
    """Return the recording of a Kernel Tuner cache (schema 1, or older without a version).

    Costs are those of its objective: times are milliseconds, energies are joules, and others are named by their unit,
    such as GFLOP/s. A cache is appended to during tuning, so that an interrupted one is not complete.

    Raises:
      ValueError: it is not a cache, or damaged; the message says where.
    """
    version(document, "1.0.0")
    names = texts(get(document, "tune_params_keys", list, "the file"), "'tune_params_keys'")
    cache = get(document, "cache", dict, "the file")
    objective = str(document.get("objective", "time"))
    if objective in names:
        raise ValueError(f"{objective[:40]!r} is both its objective and a parameter; rename the parameter in every row")
    unit = _kernel_tuner_unit(objective)
    outcomes = [_kernel_tuner_outcome(row, objective, f"row {key[:60]!r}") for key, row in cache.items()]
    columns = [[_value(row, name, key) for key, row in cache.items()] for name in names]
    facts = {
        "format": "Kernel Tuner cache",
        **{word: str(document[key]) for word, key in _FACTS.items() if document.get(key)},
        **({"cut off": "yes; the last row is incomplete and left out"} if document.get(_CUT) else {}),
        **noise([row.get("times") for row in cache.values()], "the 'times' of a row"),
        **_turning(unit, objective),
    }
    return recording(names, columns, _in_unit(Outcomes.of(outcomes), unit), unit.name, facts=facts)


_OBJECTIVES = {"time": "ms", "energy": "J", "nvml_energy": "J", "ps_energy": "J"}
"""Units of Kernel Tuner's own objectives: of its timer, and of its observers of NVML and PowerSensor."""


def _kernel_tuner_unit(objective: str) -> Unit:
    try:
        return cost_unit(_OBJECTIVES.get(objective, objective))
    except ValueError:
        unknown = f"its objective is {objective[:40]!r}, of which it is not known whether less is better"
        raise ValueError(f"{unknown}; set it to 'time' if its rows have times") from None


_FACTS = {"device": "device_name", "kernel": "kernel_name", "problem size": "problem_size"}


def _value(row: dict[str, Any], name: str, key: str) -> Any:  # noqa: ANN401 - JSON
    if name not in row:
        raise ValueError(f"row {key[:60]!r} has no value of parameter {name!r}")
    return row[name]


def _kernel_tuner_outcome(row: Any, objective: str, place: str) -> tuple[float, int, str]:  # noqa: ANN401 - JSON
    if not isinstance(row, dict):
        raise ValueError(f"{place} is not an object")
    value, named = row.get(objective), f"{objective[:40]!r} of {place}"
    failure = next((word for word in (row.get("__error__"), value, row.get("time")) if isinstance(word, str)), "")
    if failure:
        if not failure.isidentifier():
            raise ValueError(f"{named} is the text {failure[:40]!r}, neither a number nor a kind of failure")
        return np.inf, _FAILURES.get(failure, Status.RUNTIME_ERROR), failure
    cost = number(value, named)
    if is_failure(cost):
        return np.inf, Status.RUNTIME_ERROR, f"{objective} of {cost:g} stands for a failure"
    return cost, Status.OK, ""


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


_KTT_STATUS = {
    "Ok": Status.OK,
    "CompilationFailed": Status.COMPILE_ERROR,
    "ComputationFailed": Status.RUNTIME_ERROR,
    "DeviceLimitsExceeded": Status.RUNTIME_ERROR,
    "ValidationFailed": Status.WRONG_RESULT,
}


def read_ktt(document: dict[str, Any]) -> Recording:
    """Return the recording of an output file of the Kernel Tuning Toolkit; the cost is the total duration, in seconds.

    Raises:
      ValueError: it is not output of KTT, or damaged; the message says where.
    """
    metadata, results = (get(document, key, kind, "the file") for key, kind in (("Metadata", dict), ("Results", list)))
    divisor = per_second(get(metadata, "TimeUnit", str, "'Metadata'"), "'TimeUnit'")
    configs = [_ktt_config(row, f"result {i}") for i, row in enumerate(results)]
    names, columns = _columns(configs)
    outcomes = [_ktt_outcome(row, f"result {i}", divisor) for i, row in enumerate(results)]
    facts = {"format": "KTT output", **({"device": str(metadata["Device"])} if "Device" in metadata else {})}
    return recording(names, columns, Outcomes.of(outcomes), facts=facts)


def _ktt_config(row: Any, place: str) -> dict[str, Any]:  # noqa: ANN401 - JSON
    pairs = get(row, "Configuration", list, place)
    config = {get(pair, "Name", str, f"a parameter of {place}"): pair.get("Value") for pair in pairs}
    if len(config) < len(pairs):
        raise ValueError(f"{place} names a parameter twice")
    if empty := [name for name, pair in zip(config, pairs, strict=True) if "Value" not in pair]:
        raise ValueError(f"{place} has no value of parameter {empty[0]!r}")
    return config


def _ktt_outcome(row: dict[str, Any], place: str, divisor: float) -> tuple[float, int, str]:
    word = get(row, "Status", str, place)
    if word not in _KTT_STATUS:
        raise ValueError(f"'Status' of {place} is {word[:40]!r}, none of {', '.join(_KTT_STATUS)}")
    if _KTT_STATUS[word] is not Status.OK:
        return np.inf, _KTT_STATUS[word], word
    return number(row.get("TotalDuration"), f"'TotalDuration' of {place}") / divisor, Status.OK, ""


_T4_STATUS = {word: status for status, word in INVALIDITY.items()}


def read_t4(document: dict[str, Any]) -> Recording:
    """Return the recording of a T4 results file (schema 1.0.0, github.com/odgaard/TuningSchema).

    Only the first objective is read. Times become seconds, and rates are turned round, so that less is better.

    Raises:
      ValueError: it is not a T4 results file, or is damaged; the message says where.
    """
    version(document, "1.0.0")
    results, metadata = get(document, "results", list, "the file"), document.get("metadata", {})
    if not isinstance(metadata, dict):
        raise ValueError("'metadata' of the file is not an object")
    configs = [get(row, "configuration", dict, f"result {i}") for i, row in enumerate(results)]
    names, columns = _columns(configs)
    outcomes = [_t4_outcome(row, f"result {i}") for i, row in enumerate(results)]
    measured = Outcomes.of([outcome for *outcome, _, _ in outcomes])
    worked = [(unit, measures) for cost, *_, unit, measures in outcomes if np.isfinite(cost)]
    named = _one({unit for unit, _ in worked}, "units", "convert them to one")
    _one({measures for _, measures in worked}, "objectives", "keep the measurements of one")
    unit = _t4_unit(named, metadata) if np.isfinite(measured.costs).any() else Unit("seconds")
    default = get(metadata, "default", dict, "'metadata'") if "default" in metadata else None
    repeats = [get(row, "times", dict, f"result {i}").get("runtimes") for i, row in enumerate(results)]
    facts = {"format": "T4"} | _t4_provenance(metadata) | noise(repeats, "the 'runtimes' of a result")
    facts |= _turning(unit, named or str(metadata.get("unit")))
    told = {
        name: [_t4_statistic(row, name, i) for i, row in enumerate(results)] for name in _t4_told(metadata, results)
    }
    return recording(names, columns, _in_unit(measured, unit), unit.name, default, facts, told)


def _one(found: set[str], what: str, remedy: str) -> str:
    """Return what is the same in all results; empty if none succeeded."""
    if len(found) > 1:
        raise ValueError(f"its results have several {what}, {str(sorted(found))[:80]}; {remedy}")
    return next(iter(found), "")


def _t4_told(metadata: dict[str, Any], results: Sequence[dict[str, Any]]) -> list[str]:
    """Return the names of what compiling tells. T4 has none: other measurements, such as energy, need a run."""
    names = texts(metadata.get("statistics", []), "'statistics' of 'metadata'")
    objectives = [name for row in results for name in row.get("objectives", ())[:1]]
    if searched := [name for name in names if name in objectives]:
        raise ValueError(f"'statistics' of 'metadata' has the objective {searched[0]!r}, which compiling cannot tell")
    return names


def _t4_statistic(row: dict[str, Any], name: str, i: int) -> float:
    """Return what compiling told of a configuration; nan if it could not be compiled."""
    named = [each for each in row.get("measurements", ()) if isinstance(each, dict) and each.get("name") == name]
    return finite(named[0].get("value"), f"{name!r} of result {i}") if named else np.nan


def _turning(unit: Unit, named: str) -> dict[str, str]:
    """Return the fact that rates were turned round, if they were."""
    return {"a cost is": f"1 / ({named}): the file has a rate, of which more is better"} if unit.turned else {}


def _in_unit(measured: Outcomes, unit: Unit) -> Outcomes:
    return _turned(measured) if unit.turned else replace(measured, costs=measured.costs / unit.divisor)


def _turned(measured: Outcomes) -> Outcomes:
    """Return the costs of rates: 1 / each; a rate of 0 stands for a failure."""
    zero = measured.costs == 0
    with np.errstate(divide="ignore"):
        costs = np.where(measured.status == Status.OK, 1 / measured.costs, np.inf)
    reasons = [
        "a rate of 0 stands for a failure" if no else why for no, why in zip(zero, measured.reasons, strict=True)
    ]
    return Outcomes(costs, np.where(zero, Status.RUNTIME_ERROR, measured.status).astype(np.int8), reasons)


def _t4_provenance(metadata: Mapping[str, Any]) -> dict[str, str]:
    facts = metadata.get("facts", {})
    known = ("problem", "fingerprint", "sample", "made by")
    listed = {key: metadata[key] for key in known if metadata.get(key)} | (facts if isinstance(facts, dict) else {})
    return {f"recorded {key}": str(value)[:200] for key, value in listed.items()}


def _t4_unit(unit: str, metadata: Mapping[str, Any]) -> Unit:
    """Return what to do with the numbers; those that `record` wrote are costs, whatever their unit is."""
    named = unit or metadata.get("timeunit") or metadata.get("unit")
    if not isinstance(named, str) or not named:
        raise ValueError('it has no unit of time; add "metadata": {"timeunit": "milliseconds"}, or another unit')
    if not unit and "timeunit" in metadata:
        return Unit("seconds", per_second(named, "'timeunit'"))
    ours = str(metadata.get("made by", "")).startswith("bbo_suite ")
    return Unit(named) if ours and named.lower() not in SECONDS else cost_unit(named)


def _t4_outcome(row: dict[str, Any], place: str) -> tuple[float, int, str, str, str]:
    """Return cost, status, reason, unit, and what was measured."""
    word = get(row, "invalidity", str, place)
    if word not in _T4_STATUS:
        raise ValueError(f"'invalidity' of {place} is {word[:40]!r}, none of {', '.join(_T4_STATUS)}")
    status, measurement = _T4_STATUS[word], _t4_measurement(row, place)
    value, unit, measures = measurement.get("value"), measurement.get("unit", ""), str(measurement.get("name", "time"))
    if status is not Status.OK:
        return np.inf, status, value if isinstance(value, str) and value else word, "", ""
    if isinstance(correct := row.get("correctness", 1), str):
        raise ValueError(f"the correctness of {place} is the text {correct[:40]!r}, not a number")
    if correct == 0:
        return np.inf, Status.WRONG_RESULT, "its correctness is 0", "", ""
    if not isinstance(unit, str):
        raise ValueError(f"the unit of {place} is not a text")
    if not unit and measures != "time":
        raise ValueError(f"{place} measures {measures[:40]!r} without a unit; name a unit in which lower is better")
    cost = number(value, f"the value of {place}")
    if is_failure(cost):
        return np.inf, Status.RUNTIME_ERROR, f"a time of {cost:g} stands for a failure", "", ""
    return cost, Status.OK, "", unit, measures


def _t4_measurement(row: dict[str, Any], place: str) -> dict[str, Any]:
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


def _columns(configs: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    """Return the names of the parameters and the values of each; raise ValueError if results differ in parameters."""
    names = list(configs[0]) if configs else []
    for i, config in enumerate(configs):
        if config.keys() != configs[0].keys():
            raise ValueError(f"result {i} has other parameters than result 0; give all results the same parameters")
    return names, [[config[name] for config in configs] for name in names]
