"""Checks of a run's files that need no problem."""

from __future__ import annotations

import math

from ..core.problem import Status
from ..runs.machine import facts
from ..store.ending import read_end
from ..store.plan import read_settings
from ..store.stored_run import StoredRun


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
    found, here = [], facts()
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
    return isinstance(machine, dict) and machine.get("cpu") != facts()["machine"]["cpu"]
