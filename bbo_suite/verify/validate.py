"""Validation of a study: its logs are checked, its strategies replayed and its best candidates measured again.

The checks of a run are those of its files and stored parts, the replay of its strategy, and its costs measured now.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.evaluation import evaluate
from ..core.level import Level
from ..core.problem import Evaluations, Problem, Status
from ..core.strategy import Strategy
from ..core.task import Strategies
from ..errors import UserError, error_boundary
from ..loop import search
from ..parts.parts import wrong_sums
from ..registry import Registry, code_facts
from ..runs.study_plan import machine_facts
from ..store.folders import PARTS, has_begun, run_folders, unnamed_runs
from ..store.identity import CODE, read_end
from ..store.parts_log import PartsLog, Told, by_candidate
from ..store.plan import RunName, read_planned, read_settings
from ..store.rows import DEPARTS_BECAUSE, Row, departure
from ..store.stored_run import StoredRun, open_run
from .remeasure import Remeasured, fresh, measure


def check_log(run: StoredRun) -> list[str]:
    """Return a sentence for each contradiction; the checksums and numbers of the lines are verified already."""
    found = _check_rows(run)
    if run.path.name != run.name.folder:
        found.append(f"the folder's name is not that of its run, {run}")
    if len(run.rows) > run.identity.budget:
        found.append(f"there are {len(run.rows):,} rows for a budget of {run.identity.budget:,}")
    end = read_end(run.path)
    if end is not None and end.get("evaluations") != len(run.rows):
        found.append(f"end.json counts {end.get('evaluations')} evaluations, but there are {len(run.rows):,} rows")
    if study := read_settings(run.path.parent):
        words = (("budget", run.identity.budget), ("batch", run.identity.batch))
        found += [f"its {key} is {own}, the study's {study.get(key)}" for key, own in words if study.get(key) != own]
    return found


def _check_rows(run: StoredRun) -> list[str]:
    found, best = [], math.inf
    for row in run.rows:
        if (row.status is Status.OK) != math.isfinite(row.value) or not row.value >= 0:
            found.append(f"evaluation {row.evaluation} has status {row.status.word} and value {row.value}")
        elif row.value < best and not row.config and not run.source:
            found.append(f"evaluation {row.evaluation} is the best so far, but its configuration was not stored")
        best = min(best, row.value)
    return found


def remarks_on(run: StoredRun) -> list[str]:
    """Return remarks on a run: that it is unfinished, failed, or was made elsewhere or with other versions."""
    found, here = [], machine_facts()
    if read_end(run.path) is None:
        found.append(f"unfinished: {len(run.rows):,} of {run.identity.budget:,} evaluations")
    if run.error:
        found.append(f"an error ended it: {run.error}")
    if run.source:
        found.append(f"imported from {run.source}: its proposals cannot be replayed")
    elif other_machine(run):
        found.append(f"made on another machine: {run.head['machine'].get('cpu')}")
    then = run.head.get("versions") or {}
    changed = [
        f"{name} {then[name]}, now {now}" for name, now in here["versions"].items() if then.get(name, now) != now
    ]
    if changed:
        found.append(f"made with other versions: {'; '.join(changed)}")
    return found


def other_machine(run: StoredRun) -> bool:
    """Return whether the run was made on another processor."""
    machine = run.head.get("machine")
    return isinstance(machine, dict) and machine.get("cpu") != machine_facts()["machine"]["cpu"]


_BATCH = 100
"""Evaluations whose parts are in memory at a time."""


def has_parts(run: StoredRun, problem: Problem | None) -> bool:
    """Return whether a run was told costs of parts, so that it must have a log of them.

    Args:
      problem: None if it is not available: then the log itself tells.
    """
    told = problem.tells_parts if problem else (run.path / PARTS).exists()
    return Level.of(run.head) is Level.PARTS and told and not run.source


def check_parts(run: StoredRun, problem: Problem | None) -> list[str]:
    """Return a sentence if the log of parts is damaged or incomplete, or if some parts do not make up their cost.

    Args:
      problem: says how costs follow from parts; None if it is not available.
    """
    if not has_parts(run, problem):
        return []
    try:
        return list(_first_wrong(run, problem))
    except UserError as error:
        return [str(error)]


def _first_wrong(run: StoredRun, problem: Problem | None) -> Iterator[str]:
    log = PartsLog(run.path)
    for start in range(0, len(run.rows), _BATCH):
        rows = run.rows[start : start + _BATCH]
        parts = log.replay(start + 1, len(rows))
        if problem is None:
            continue
        with error_boundary(f"problem {problem.id}", "combine"):
            combined = np.asarray(problem.combine(parts))
        for i in wrong_sums(combined, np.array([row.value for row in rows]))[:1]:
            total, row = float(combined[i]), rows[i]
            yield f"the parts of evaluation {row.evaluation} make {total!r}, but it cost {row.value!r}"
            return


def stored_parts(run: StoredRun, problem: Problem, count: int) -> Sequence[Told]:
    """Return the parts of the first `count` evaluations; none if the run was told none, or if they are damaged."""
    if check_parts(run, problem) or not has_parts(run, problem):
        return []
    return list(by_candidate(PartsLog(run.path).replay(1, count)))


def changed_part(row: Row, stored: Told, now: Told) -> str:
    """Return how the parts of an evaluation differ now; empty if they do not."""
    for key in sorted(stored.keys() | now.keys()):
        if stored.get(key) != now.get(key):
            words = (_part_text(stored, key), _part_text(now, key))
            return f"part {key:016x} of evaluation {row.evaluation} was {words[0]} and is {words[1]} now"
    return ""


def _part_text(parts: Told, key: int) -> str:
    if key not in parts:
        return "absent"
    count, cost = parts[key]
    return f"{cost!r}, {count:g} times"


def replay(
    run: StoredRun, problem: Problem, strategy_class: type[Strategy], most: int, strategies: Strategies
) -> NDArray:
    """Return `(k, d)` the candidates of the first rows, `most` of them or up to a batch more; nothing is evaluated.

    Args:
      strategies: for a strategy that runs others.

    Raises:
      UserError: the strategy fails, or proposes other candidates than the stored ones.
    """
    own = run.identity
    log = PartsLog(run.path) if strategy_class.level >= Level.PARTS and problem.tells_parts else None
    done, batches = 0, [np.empty((0, len(problem.space)), problem.space.dtype)]

    def stored(configs: NDArray, _: float) -> Evaluations:
        _compare_proposals(configs, run, problem, done)
        known = run.rows[done : done + len(configs)]
        batches.append(configs[: len(known)])
        parts = log.replay(known[0].evaluation, len(known)) if log and len(known) == len(configs) else None
        values = np.array([row.value for row in known] + [np.inf] * (len(configs) - len(known)))  # the last may be cut
        return Evaluations(values, np.zeros(len(configs), np.int8), parts=parts)

    settings: dict[str, Any] = {"batch": own.batch, "registry": strategies, "answer": stored, "owner": own.strategy}
    with error_boundary(f"strategy {own.strategy}", "its constructor"):
        options = strategy_class.Options(**own.options)
    for batch in search(strategy_class, problem, own.budget, own.generator(), options=options, **settings):
        done += len(batch.configs)
        if done >= min(most, len(run.rows)):
            break
    else:
        if done < min(most, len(run.rows)):
            _compare_proposals(batches[0], run, problem, done)
    return np.concatenate(batches)


def _compare_proposals(configs: NDArray, run: StoredRun, problem: Problem, done: int) -> None:
    known = run.rows[done : done + max(1, len(configs))]
    if what := departure(known, problem.space.digests(configs)):
        raise UserError(f"{what}; {DEPARTS_BECAUSE}")


LEAST_NOISE = 0.05
"""The relative difference of measured speedups that is always allowed: a few measurements may hide noise."""


def check_values(run: StoredRun, problem: Problem, proposed: NDArray, sample: int, remarks: list[str]) -> list[str]:
    """Return what is not reproduced among the default, the best candidate, the first rows and some improvements.

    Where costs vary, only the best speedup is compared, and only on the same machine.

    Args:
      run: its best candidate, if there is one, must be stored.
      proposed: `(k, d)` the candidates of the first rows, as the replayed strategy proposes them.
      sample: the number of later improvements to check.
      remarks: notes on what was not compared are appended.
    """
    try:
        return _check_costs(run, problem, proposed, sample, remarks)
    except UserError as error:
        return [str(error)]


def _check_costs(run: StoredRun, problem: Problem, proposed: NDArray, sample: int, remarks: list[str]) -> list[str]:
    best = run.best
    config = problem.default_row() if best is None else _unpacked(problem, best)
    again = measure(problem, config)
    if again.noisy:
        return _changed_speedup(run, again, remarks)
    first, stored = run.rows[: len(proposed)], [row for row in run.rows[len(proposed) :] if row.config]
    chosen = np.random.default_rng(0).permutation(len(stored))[:sample]
    later = [stored[i] for i in sorted(chosen.tolist())] + ([best] if best is not None else [])
    configs = [*proposed, *(_unpacked(problem, row) for row in later)]
    parts = stored_parts(run, problem, len(first))
    different = _changed_costs(problem, configs, [*first, *later], parts, run.identity.batch)
    return _changed_default(run, again) + list(dict.fromkeys(different))


def _changed_default(run: StoredRun, again: Remeasured) -> list[str]:
    stored, now = run.head["default"], again.defaults[0]
    return [] if stored == now else [f"the default cost {stored!r} and costs {now!r} now"]


def _changed_speedup(run: StoredRun, again: Remeasured, remarks: list[str]) -> list[str]:
    if other_machine(run):
        remarks.append("costs vary, and were measured on another machine: not compared")
        return []
    remarks.append(f"costs vary by {again.spread:.1%}: only the best speedup was compared")
    stored, now = run.speedup, again.speedup
    if not stored:
        return []
    if now is not None and abs(math.log(now / stored)) <= max(LEAST_NOISE, 3 * again.spread):
        return []
    words = f"{now:.4f}" if now is not None else f"none ({again.failure})"
    return [f"the best speedup was {stored:.4f} and is {words} now, where costs vary by {again.spread:.1%}"]


def _changed_costs(
    problem: Problem, configs: Sequence[NDArray], rows: Sequence[Row], parts: Sequence[Told], batch: int
) -> Iterator[str]:
    """Yield a sentence for each row with another cost now, or with other parts.

    Timeouts, stored or new, are left out: they depend on the machine.

    Args:
      parts: of the first rows; of none if the run was not told of parts.
    """
    for start in range(0, len(rows), batch):
        part = rows[start : start + batch]
        result = evaluate(problem, np.array(configs[start : start + batch]), with_parts=bool(parts))
        told = by_candidate(result.parts) if result.parts else ()
        for row, value, status in zip(part, result.values.tolist(), result.status.tolist(), strict=True):
            if value != row.value and Status.TIMEOUT not in (row.status, status):
                yield f"evaluation {row.evaluation} cost {row.value!r} and costs {value!r} now"
        for row, stored, now in zip(part, parts[start : start + batch], told, strict=False):
            if row.status is not Status.TIMEOUT and (change := changed_part(row, stored, now)):
                yield change


def _unpacked(problem: Problem, row: Row) -> NDArray:
    try:
        config = problem.space.unpack(row.config)
    except ValueError as error:
        raise UserError(f"the configuration of evaluation {row.evaluation} cannot be read: {error}") from None
    if row.digest and problem.space.digests(config[None]) != [row.digest]:
        raise UserError(f"the configuration of evaluation {row.evaluation} has another digest than the row")
    return config


class Finding(StrEnum):
    """The outcome of one check."""

    HOLDS = "holds"
    BROKEN = "does NOT hold"
    UNCHECKED = "not checked"


@dataclass
class Verdict:
    """The findings on one run.

    Attributes:
      name: of its folder.
      run: None if it cannot be read.
      rows: their number; None if it cannot be read, or is not there.
      log, replayed, values: the outcome for the files, the replay of the strategy, and the costs measured again.
      complaints: a sentence for each failed check.
      remarks: what was not checked and why, and other notes.
    """

    name: str
    run: RunName | None = None
    rows: int | None = None
    log: Finding = Finding.UNCHECKED
    replayed: Finding = Finding.UNCHECKED
    values: Finding = Finding.UNCHECKED
    complaints: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The run in words."""
        return self.run.label if self.run else self.name

    @property
    def absent(self) -> bool:
        """True if the run is expected but missing."""
        return self.run is not None and self.rows is None

    @property
    def unchecked(self) -> bool:
        """True if a check was left out and nothing wrong was found."""
        return not self.complaints and Finding.UNCHECKED in (self.log, self.replayed, self.values)

    def facts(self) -> dict[str, Any]:
        """Return the verdict as plain data; problem, strategy and seed are null if the run cannot be read."""
        run = self.run or (None, None, None)
        checks = {"log": self.log, "proposals": self.replayed, "values": self.values}
        words = {"complaints": self.complaints, "remarks": self.remarks}
        return {
            "folder": self.name,
            **dict(zip(RunName._fields, run, strict=True)),
            "rows": self.rows,
            **checks,
            **words,
        }

    def judge(self, found: list[str]) -> Finding:
        """Keep complaints and return the outcome."""
        self.complaints += [sentence for sentence in found if sentence not in self.complaints]
        return Finding.BROKEN if found else Finding.HOLDS


def validate(
    registry: Registry, study: str, results: Path | str, sample: int, show: Callable[[int, str], None]
) -> Iterator[Verdict]:
    """Yield the findings on each run, then on runs that are missing.

    Args:
      sample: number of rows of each run, from the first on, that are replayed and evaluated again; as many of the
        later improvements are evaluated again too.
      show: called with the number of runs so far and a few words.

    Raises:
      UserError: there is no such study, or the sample is negative.
    """
    if sample < 0:
        raise UserError(f"sample must be 0 or more, not {sample}")
    folders = run_folders(study, results)
    problems: dict[tuple[str, str], Problem | UserError] = {}
    verdicts = []
    for number, folder in enumerate(folders):
        show(number, folder.name)
        verdicts.append(_of_run(registry, folder, sample, problems))
        yield verdicts[-1]
    yield from _leftovers(folders[0].parent)
    yield from _missing([verdict.run for verdict in verdicts if verdict.run], folders[0].parent)


def _of_run(
    registry: Registry, folder: Path, sample: int, problems: dict[tuple[str, str], Problem | UserError]
) -> Verdict:
    verdict = Verdict(folder.name)
    try:
        run = open_run(folder)
        verdict.run, verdict.rows = run.name, len(run.rows)
        wrong = check_log(run)
    except UserError as error:
        verdict.log = verdict.judge([str(error)])
        return verdict
    verdict.remarks += remarks_on(run)
    problem = _problem(registry, run, problems)
    verdict.log = verdict.judge(wrong + check_parts(run, None if isinstance(problem, UserError) else problem))
    if isinstance(problem, UserError):
        verdict.remarks.append(f"neither values nor proposals can be checked: {problem}")
        return verdict
    _against_problem(registry, problem, run, sample, verdict)
    return verdict


def _problem(
    registry: Registry, run: StoredRun, known: dict[tuple[str, str], Problem | UserError]
) -> Problem | UserError:
    key = (run.identity.problem, run.identity.fingerprint)
    if key not in known:
        for other in [other for other in known if other[0] != run.identity.problem]:
            del known[other]  # only one problem is kept: runs are sorted by problem
        try:
            known[key] = fresh(registry, *key)
        except UserError as error:
            known[key] = error
    return known[key]


def _against_problem(registry: Registry, problem: Problem, run: StoredRun, sample: int, verdict: Verdict) -> None:
    from threadpoolctl import threadpool_limits

    proposed = problem.space.sample(0, run.identity.generator())
    try:
        strategy = None if run.source else registry.strategy(run.identity.strategy)
    except UserError as error:
        strategy = None
        verdict.remarks.append(f"proposals cannot be checked: {error}")
    if strategy is not None:
        try:
            with threadpool_limits(1):
                proposed = replay(run, problem, strategy, sample, registry)
            verdict.replayed = Finding.HOLDS
        except UserError as error:
            verdict.replayed = verdict.judge([f"{error}{_other_code(registry, run, strategy)}"])
    if run.best is not None and not run.best.config:
        verdict.remarks.append("values cannot be checked: the best candidate was not stored")
        return
    verdict.values = verdict.judge(check_values(run, problem, proposed, sample, verdict.remarks))


def _other_code(registry: Registry, run: StoredRun, strategy: type[Strategy]) -> str:
    """Return that a run was made with other code of its strategy, as `run` says it; empty if it was not."""
    name = run.identity.strategy
    with error_boundary(f"strategy {name}", "its options"):
        now = code_facts(registry, name, strategy.Options(**run.identity.options)).get(CODE)
    return "" if now == run.head.get(CODE) else f"; it was made with other code of strategy {name}"


def _leftovers(study: Path) -> Iterator[Verdict]:
    for path in unnamed_runs(study):
        verdict = Verdict(path.name)
        verdict.log = verdict.judge(["it has rows but no run.json, so their run is unknown"])
        yield verdict


def _missing(runs: list[RunName], study: Path) -> Iterator[Verdict]:
    """Yield missing runs of the plan, or without a plan, of every strategy on every problem with every seed."""
    axes = [sorted(set(values)) for values in zip(*runs, strict=True)]
    for expected in read_planned(study) or itertools.starmap(RunName, itertools.product(*axes)):
        if not has_begun(study / expected.folder):
            yield Verdict(expected.folder, expected, remarks=["there is no such run"])
