"""Recording: measure a problem's candidates once and write a file that anybody can search."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.enumeration import Enumeration
from ..core.evaluation import default_value, evaluate
from ..core.level import Level
from ..core.problem import Problem, set_fact
from ..core.space import Space
from ..errors import UserError, did_you_mean
from ..files.log import CheckedLog
from ..files.reading import parse_json
from ..files.writing import disk_errors
from ..registry import Registry
from .files import Measurements, Outcome, writer

LARGEST = 1_000_000
"""The most candidates in one file."""
BATCH = 100
"""Candidates between two flushes; where costs are times, a tenth of it per worker, because one may take a minute."""

Progress = Callable[[int, str], None]
"""Called with the number of evaluations so far and a short description."""


def record(
    registry: Registry,
    problem_id: str,
    out: Path,
    sample: int | None,
    seed: int,
    parameters: Sequence[str],
    workers: int,
    progress: Callable[[int], Progress],
) -> None:
    """Measure the candidates of a problem, or a sample of them, and write them to `out`.

    The default is measured first. What compiling tells of the candidates is written, too. Until all are measured, the
    measurements are in a file named like `out` with `.part` appended; the same call again resumes from it.

    Args:
      sample: the number of distinct candidates, drawn uniformly; None: all.
      parameters: the names of the parameters that vary (all if empty); the others keep their default.
      progress: takes the number of evaluations and returns a function that is called after each batch.

    Raises:
      UserError: an argument is wrong, there are too many candidates, or the file exists already.
    """
    write = writer(out)
    if out.exists():
        raise UserError(f"{out} exists already; remove it or choose another --out")
    if not out.parent.is_dir():
        raise UserError(f"there is no folder {out.parent} for {out.name}; create it or choose another --out")
    problem = registry.load(problem_id)
    set_fact(problem, "workers", workers)
    default_value(problem)
    columns = _columns(problem.space, parameters)
    configs = _candidates(problem, columns, sample, seed)
    metadata: dict[str, Any] = {
        "problem": problem_id,
        "fingerprint": problem.fingerprint(),
        **({"timeunit": "seconds"} if problem.unit == "seconds" else {}),
        **({"varied": list(parameters)} if parameters else {}),
        "sample": f"{sample:,} of {_number_text(_cardinality(problem.space, columns))}, seed {seed}" if sample else "",
        "made by": f"bbo_suite {version('bbo_suite')}, Python {platform.python_version()}, {platform.machine()}",
    }
    part = out.with_name(f"{out.name}.part")
    outcomes = _measured(problem, configs, part, metadata, progress(len(configs)))
    metadata["facts"] = problem.facts()  # after the part: measured facts differ when a recording is resumed
    order = np.lexsort(configs.T[::-1])  # neighbours have much in common: the file is a third smaller
    configs, outcomes = configs[order], [outcomes[i] for i in order.tolist()]
    told = _told(problem, configs)
    measurements = Measurements(
        problem.space, columns, configs, outcomes, metadata, problem.unit, problem.default_row(), told
    )
    with disk_errors(out):
        unfinished = out.with_name(f".{out.name}")  # same extension; `out` exists only once it is complete
        write(unfinished, measurements)
        unfinished.replace(out)
        part.unlink()


def _columns(space: Space, parameters: Sequence[str]) -> list[int]:
    if not parameters:
        return list(range(len(space)))
    places = {space.name(i): i for i in range(len(space))}
    for name in parameters:
        if name not in places:
            raise UserError(f"the problem has no parameter {name!r}.{did_you_mean(name, places)}")
    return sorted({places[name] for name in parameters})


def _cardinality(space: Space, columns: Sequence[int]) -> int:
    return space.cardinality if len(columns) == len(space) else _free(space, columns).cardinality


def _number_text(count: int) -> str:
    """Return a number as text, as a power of ten if it is huge."""
    return f"{count:,}" if count < 10**15 else f"10^{math.log10(count):,.0f}"


def _free(space: Space, columns: Sequence[int]) -> Space:
    """Return the product of some parameters without the constraints."""
    return Space(space.sizes[list(columns)])


def _candidates(problem: Problem, columns: Sequence[int], sample: int | None, seed: int) -> NDArray:
    """Return distinct allowed candidates, the default first."""
    if sample is not None and sample < 1:
        raise UserError(f"sample must be 1 or more, not {sample}")
    if seed < 0:
        raise UserError(f"seed must be 0 or more, not {seed}")
    space, default = problem.space, problem.default_row()
    part = space if len(columns) == len(space) else _free(space, columns)
    wanted = part.cardinality if sample is None else min(sample, part.cardinality)
    if wanted > LARGEST:
        raise UserError(
            f"there are {_number_text(wanted)} candidates, more than {LARGEST:,}; give --sample, or fewer --parameter"
        )
    order = Enumeration(part, np.random.default_rng(seed))
    candidates = default[None]
    for start in range(0, order.length, wanted):
        rows = np.repeat(default[None], min(wanted, order.length - start), axis=0)
        rows[:, columns] = order.rows(start, start + wanted)
        candidates = np.vstack([candidates, rows[space.allowed(rows) & (rows != default).any(axis=1)]])
        if len(candidates) >= wanted or start > 100 * LARGEST:
            break
    return candidates[:wanted]


def _measured(
    problem: Problem, configs: NDArray, part: Path, metadata: dict[str, Any], show: Progress
) -> list[Outcome]:
    """Return the outcome of each candidate; those in `part` are not measured again."""
    remedy = "if it is another recording, choose another --out, else remove it"
    log = CheckedLog(part, f"{json.dumps(metadata)}\n", _outcome, checksums=False, remedy=remedy)
    outcomes = list(log)
    batch = BATCH // 10 * max(1, problem.workers) if problem.timed else BATCH
    log.append([])
    while len(outcomes) < len(configs):
        show(len(outcomes), problem.id)
        new = list(_outcomes(problem, configs[len(outcomes) : len(outcomes) + batch]))
        log.append(f"{json.dumps(outcome)}\n" for outcome in new)
        outcomes += new
    show(len(outcomes), problem.id)
    return outcomes


def _told(problem: Problem, configs: NDArray) -> dict[str, NDArray[np.float64]]:
    """Return what compiling tells of each candidate, by name."""
    compiler = problem.task(Level.COMPILATION).compiler
    return dict(zip(compiler.statistics, compiler(configs).T, strict=True)) if compiler else {}


def _outcome(line: str) -> Outcome:
    cost, status, reason = parse_json(line)
    return float(cost), int(status), str(reason)


def _outcomes(problem: Problem, configs: NDArray) -> Iterator[Outcome]:
    result = evaluate(problem, configs)
    for i, (cost, status) in enumerate(zip(result.values.tolist(), result.status.tolist(), strict=True)):
        yield cost, status, result.reasons.get(i, "")
