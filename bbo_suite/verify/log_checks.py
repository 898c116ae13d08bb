"""What can be seen of a run's files without its problem."""

from __future__ import annotations

import math

from ..core.problem import Status
from ..files import folder_name, read_json
from ..runs.machine import facts
from ..store.plan import STUDY
from ..store.run_folder import END, ERROR
from ..store.stored_run import StoredRun


def check_log(run: StoredRun) -> list[str]:
    """Return what contradicts itself; that lines have their checksums and numbers is known already."""
    found = _check_rows(run)
    if run.path.name != folder_name(run.run.problem, run.run.strategy, str(run.run.seed)):
        found.append(f"the folder's name is not that of its run, {run}")
    if len(run.rows) > run.run.budget:
        found.append(f"there are {len(run.rows):,} rows for a budget of {run.run.budget:,}")
    end = read_json(run.path / END) if (run.path / END).exists() else None
    if end is not None and end.get("evaluations") != len(run.rows):
        found.append(f"{END} counts {end.get('evaluations')} evaluations, and {len(run.rows):,} rows are there")
    shared = run.path.parent / STUDY
    if shared.exists():
        study = read_json(shared)
        words = (("budget", run.run.budget), ("batch", run.run.batch))
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
    """Return what one should know of a run: is it unfinished, did it fail, was it made elsewhere?"""
    found, here = [], facts()
    if not (run.path / END).exists():
        found.append(f"unfinished: {len(run.rows):,} of {run.run.budget:,} evaluations")
    if (run.path / ERROR).exists():
        lines = (run.path / ERROR).read_text(encoding="utf-8", errors="replace").strip().splitlines()
        found.append(f"an error ended it: {lines[-1] if lines else 'without a message'}")
    if run.source:
        found.append(f"imported from {run.source}: its strategy cannot be asked again")
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
    """Was the run made on another processor?"""
    machine = run.head.get("machine")
    return isinstance(machine, dict) and machine.get("cpu") != facts()["machine"]["cpu"]
