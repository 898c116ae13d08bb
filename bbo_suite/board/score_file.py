"""The score file of a strategy: its runs on the reference list, a table like any other, with what it was made with.

Beside the columns of a table of runs are `list` (version and digest of the reference list), `code` (of the strategy's
source), `versions` (of packages), and `check`, the checksum of the line.
"""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.level import LEVEL
from ..errors import UserError
from ..files.log import checksummed
from ..files.reading import read_bounded
from ..files.writing import write_text
from ..plan import Plan
from ..registry import Registry, code_facts
from ..runs.runner import Display, run_study
from ..runs.study_plan import StudyPlan, check_name, machine_facts
from ..store.identity import CODE
from ..store.run_table import COLUMNS, SCORED, check_lines, read_runs, valid_runs, write_runs
from .reference import ReferenceList

if TYPE_CHECKING:
    import pandas as pd

END = "-runs.csv"
_LARGEST = 1 << 20
_VERSIONS = ("bbo_suite", "numpy", "numba")
_EXACT = [LEVEL, "digest"]
"""What a run that is made again has exactly as before; its best cost is rounded in the file."""


def code_of(registry: Registry, strategy: str) -> str:
    """Return the version of a strategy's code; "" for one of this distribution."""
    found = code_facts(registry, strategy, registry.strategy(strategy).Options()).get(CODE, "")
    return str(found).rpartition("=")[2]


def studies(registry: Registry, strategy: str, listed: ReferenceList, results: Path) -> list[StudyPlan]:
    """Return the studies that make a strategy's runs; other code of a strategy, or another list, has others.

    The first one is a single short run: a strategy that fails, fails there.
    """
    name = f"score-{strategy}-{listed.name}-{code_of(registry, strategy)[:8]}"
    check_name(f"{name}-{listed.budgets[-1]}", f"the name of a strategy's file, {strategy!r},")
    found = [study for plan in listed.plans([strategy]) for _, study in plan.studies(name, results, registry)]
    first = Plan(found[0].problems[:1], [strategy], listed.budgets[:1], 1, listed.batch, plain_seeds=True)
    return [study for _, study in first.studies(name, results, registry)] + found


def write(file: Path, planned: list[StudyPlan], registry: Registry, strategy: str, listed: ReferenceList) -> None:
    """Write the score file of some studies' runs; what else lies in their folders, such as a copy, is no part of it.

    Raises:
      UserError: a run is damaged, or the file cannot be written.
    """
    runs = valid_runs(sorted({study.path / run.folder for study in planned for run in study.runs}))
    versions = " ".join(f"{name}={machine_facts()['versions'][name]}" for name in _VERSIONS)
    told = runs.assign(list=listed.name, code=code_of(registry, strategy), versions=versions)
    with TemporaryDirectory() as folder:
        write_runs(Path(folder) / "runs.csv", told)
        lines = (Path(folder) / "runs.csv").read_text(encoding="utf-8").splitlines()
    text = "".join(checksummed(f"{line},") for line in lines[1:])
    write_text(file, f"{lines[0]},{SCORED[-1]}\n{text}")


def read(file: Path, listed: ReferenceList) -> pd.DataFrame:
    """Return the runs in a score file, all that the reference list asks for.

    Raises:
      UserError: it cannot be read, was changed, is of another list, or lacks a run.
    """
    try:
        header, *lines = read_bounded(file, _LARGEST).decode().splitlines(keepends=True) or [""]
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {file}: {getattr(error, 'strerror', None) or error}") from None
    columns = header.rstrip("\n").split(",")
    if columns != [*(name for name in COLUMNS if name in columns), *SCORED]:
        raise UserError(f"{file} is not a score file; `python -m bbo_suite score FILE.py` writes one")
    check_lines(file, lines)
    if not lines:
        raise UserError(f"{file} has no runs; write it again by `score`")
    rows = list(csv.reader(io.StringIO("".join(lines))))
    if {len(columns)} != {*map(len, rows)} or len(rows) != len(lines):  # checksums are of lines, not of the header
        raise UserError(f"{file} has rows with other columns than its header; write it again by `score`")
    named = {row[columns.index("list")] for row in rows}
    if named != {listed.name}:
        other = next(iter(named - {listed.name}))
        raise UserError(f"{file} is of reference list {other}, and this version has {listed.name}; run `score` again")
    runs = read_runs(file).assign(code=[row[columns.index("code")] for row in rows])  # it may look like a number
    _check_complete(file, runs, listed)
    return runs


def _check_complete(file: Path, runs: pd.DataFrame, listed: ReferenceList) -> None:
    """Refuse a file with another run, or without one, than the list asks for, or of several strategies."""
    found = {(r.problem, r.fingerprint, r.budget, r.seed): r for r in runs.itertuples()}
    asked = {(t.problem, t.fingerprint, b, s) for t in listed.tasks for b in t.budgets for s in range(listed.seeds)}
    if odd := sorted(asked ^ found.keys()):
        problem, _, budget, seed = odd[0]
        verb = "lacks" if odd[0] in asked else "has more than is asked for:"
        raise UserError(f"{file} {verb} the run of {problem}, budget {budget}, seed {seed}; write it again by `score`")
    if runs["strategy"].nunique() > 1 or len(found) < len(runs):
        raise UserError(f"{file} has runs of several strategies; write it again by `score`")


def made_again(file: Path, runs: pd.DataFrame, registry: Registry, listed: ReferenceList) -> Iterator[tuple[str, bool]]:
    """Make one run of each task again, and yield its name and whether it is the one in the file.

    Args:
      runs: those in the file (see `read`).

    Raises:
      UserError: the source of the strategy is another, or a run fails.
    """
    strategy, code = str(runs["strategy"].iloc[0]), str(runs["code"].iloc[0])
    if (here := code_of(registry, strategy)) != code:
        raise UserError(f"{file} was made by other source of {strategy} (code {code}, not {here}); run `score` again")
    listed.check_here(registry)
    rng = np.random.default_rng(zlib.crc32(file.read_bytes()))
    with TemporaryDirectory() as folder:
        for task in listed.tasks:
            own = runs[runs["problem"] == task.problem]
            row = own.iloc[int(rng.integers(len(own)))]
            budget, seed = int(row["budget"]), int(row["seed"])
            again = _again(
                Plan([task.problem], [strategy], (budget,), (seed,), listed.batch, plain_seeds=True),
                Path(folder),
                registry,
            )
            equal = [*again[_EXACT]] == [*row[_EXACT]] and np.isclose(again["best"], row["best"], rtol=1e-9, atol=0)
            yield f"{task.problem}, budget {budget}, seed {seed}", bool(equal)


def _again(plan: Plan, folder: Path, registry: Registry) -> pd.Series[Any]:
    """Make the only run of a plan, and return its row in a table of runs."""
    ((_, study),) = plan.studies("check", folder, registry)
    outcome = run_study(study, 1, Display())
    if outcome.errors:
        raise UserError(outcome.errors[0])
    return valid_runs([study.path / study.runs[0].folder]).iloc[0]
