"""Optuna: a journal with a study for each run, for `optuna.load_study` and optuna-dashboard; SQLite can be read too."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO
from urllib.parse import quote

from ..core.libraries import quiet_optuna
from ..core.problem import Status
from ..files.reading import parse_json
from ..store.rows import STATUS, Row
from ..store.stored_run import StoredRun
from .formats import ForeignRun, Format, StoredStudy, facts
from .write_only import Candidates

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.storages import BaseStorage
    from optuna.study._frozen import FrozenStudy
    from optuna.trial import FrozenTrial

OWN = "bbo_suite"
"""The attribute of a study that identifies its run."""
_ROW = ("evaluation", "digest", "status", "reason", "strategy_seconds", "evaluation_seconds", "config")
"""The attributes of a trial: the columns of a row besides the candidate's parameters and its cost."""


class _Journal:
    """The backend of a `JournalStorage`; it keeps the names of the studies in memory, but none of their trials.

    Optuna's own backend locks and synchronises the file for each operation: 40 ms a trial, here 1.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._studies: list[dict[str, Any]] = []
        self._new: list[dict[str, Any]] = []

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Write operations."""
        self._file.writelines(f"{json.dumps(log, separators=(',', ':'))}\n" for log in logs)
        self._studies += [log for log in logs if "study_name" in log]
        self._new += logs

    def read_logs(self, log_number_from: int) -> list[dict[str, Any]]:
        """Return the operations that a storage has not seen; of earlier studies only that they exist."""
        new, self._new = self._new, []
        return new if log_number_from else list(self._studies)


def write(study: StoredStudy, path: Path) -> list[str]:
    """Write a journal; parameters are categorical, failed evaluations are failed trials."""
    candidates = Candidates(study)
    with path.open("w", encoding="utf-8") as file, quiet_optuna():
        journal = _Journal(file)
        for run in study.runs:
            _write(journal, run, candidates)
    return list(candidates.notes())


def _write(journal: _Journal, run: StoredRun, candidates: Candidates) -> None:
    from optuna import create_study
    from optuna.distributions import CategoricalDistribution
    from optuna.storages import JournalStorage
    from optuna.trial import TrialState, create_trial

    before = candidates.left_out
    known, measurements = candidates.of(run)
    names, values = measurements.described()
    choices: dict[str, BaseDistribution] = {
        name: CategoricalDistribution(own) for name, own in zip(names, values, strict=True)
    }
    made_by = create_study(storage=JournalStorage(journal), study_name=run.path.name)  # type: ignore[arg-type]
    counts = {"trials": len(known), "evaluations": len(known) + candidates.left_out - before}
    made_by.set_user_attr(OWN, facts(run) | counts)
    rows = zip(
        measurements.configs.tolist(), measurements.outcomes, known[list(_ROW)].itertuples(index=False), strict=True
    )
    for config, (cost, status, _), row in rows:
        params = {name: own[index] for name, own, index in zip(names, values, config, strict=True)}
        end = {"value": cost, "state": TrialState.COMPLETE} if status == Status.OK else {"state": TrialState.FAIL}
        made_by.add_trial(
            create_trial(params=params, distributions=choices, user_attrs=dict(zip(_ROW, row, strict=True)), **end)
        )


def recognises(path: Path, start: bytes) -> bool:
    """Return whether it is SQLite, or its first line holds an operation."""
    return start[:16] == b"SQLite format 3\0" or (start[:1] == b"{" and b'"op_code"' in start.partition(b"\n")[0])


def read(path: Path) -> Iterator[ForeignRun]:
    """Yield the run that each study of a storage is.

    Raises:
      ValueError: with the line, the study or the trial that is wrong.
    """
    try:
        with quiet_optuna():
            storage = _storage(path)
            for study in storage.get_all_studies():
                yield _run(storage, study)
    except ValueError:
        raise
    except Exception as error:  # whatever a damaged file makes Optuna or its database raise
        raise ValueError(
            f"Optuna cannot read it ({type(error).__name__}: {' '.join(str(error).split())[:120]})"
        ) from None


def _storage(path: Path) -> BaseStorage:
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend

    with path.open("rb") as file:
        if file.read(6) == b"SQLite":
            return RDBStorage(f"sqlite:///file:{quote(str(path.absolute()))}?mode=ro&uri=true")
        file.seek(0)
        for number, line in enumerate(file, start=1):
            _check(number, line)
    return JournalStorage(JournalFileBackend(str(path)))


def _check(number: int, line: bytes) -> None:
    try:
        operation = parse_json(line)
    except ValueError as error:
        raise ValueError(f"line {number} is not valid JSON; it is cut off or damaged ({error})") from None
    if not isinstance(operation, dict) or not isinstance(operation.get("op_code"), int) or line[-1:] != b"\n":
        raise ValueError(f"line {number} is not an operation of a journal, or is cut off")


def _run(storage: BaseStorage, study: FrozenStudy) -> ForeignRun:
    from optuna.study import StudyDirection
    from optuna.trial import TrialState

    place = f"study {study.study_name!r}"
    if study._directions != [StudyDirection.MINIMIZE]:
        raise ValueError(f"{place} does not minimise one value; a cost is a single number that is minimised")
    own = study.user_attrs.get(OWN, {"strategy": study.study_name, "seed": 0})
    ended = (TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED)
    trials = storage.get_all_trials(study._study_id, deepcopy=False, states=ended)
    if not isinstance(own, dict) or not isinstance(own.get("evaluations", 0), int):
        raise ValueError(f"{place} has an invalid attribute {OWN!r}")
    if own.get("trials", len(trials)) != len(trials):
        raise ValueError(f"{place} has {len(trials)} trials instead of {own['trials']!r}; is it cut off?")
    rows = (_row(place, number, trial) for number, trial in enumerate(trials, start=1))
    return ForeignRun(own, rows, place, own.get("evaluations", 0))


def _row(place: str, number: int, trial: FrozenTrial) -> Row:
    value = trial.value if trial.state.name == "COMPLETE" and trial.value is not None else math.inf
    known = trial.user_attrs
    spent = trial.duration.total_seconds() if trial.duration else 0.0
    try:
        status = STATUS[known.get("status", "ok" if math.isfinite(value) else "runtime_error")]
        seconds = (float(known.get("strategy_seconds", 0)), float(known.get("evaluation_seconds", spent)))
        digest, config = (str(known.get(key, "")) for key in ("digest", "config"))
        reason = str(known.get("reason", "" if math.isfinite(value) else f"a trial that is {trial.state.name.lower()}"))
        evaluation = int(known.get("evaluation", number))
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ValueError(f"trial {trial.number} of {place} has attributes that are not a valid row") from None
    return Row(evaluation, digest or _digest(trial.params), value, status, *seconds, config, reason)


def _digest(params: dict[str, Any]) -> str:
    """Return a text of 16 hexadecimal digits that tells candidates apart where their space is not known."""
    return hashlib.blake2b(json.dumps(params, sort_keys=True, default=str).encode(), digest_size=8).hexdigest()


OPTUNA = Format("an Optuna journal, one study per run", ".journal", write, recognises, read, "Optuna")
