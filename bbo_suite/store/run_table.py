"""The table of runs: one row for each, as a frame and as a CSV file `runs.csv`. Published studies consist of it."""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.level import LEVEL, OLDER_FLAGS, Level
from ..errors import UserError
from ..files.log import without_checksum
from ..files.writing import disk_errors, replacing
from .folders import readable
from .frames import REMEASURED, read_checked
from .remeasured import ROUNDS, Finalist
from .results import COUNTED, RunResult, counted, digest_of_rows, hashed, result_of
from .rows import joined_runs

if TYPE_CHECKING:
    import pandas as pd

_TYPES: dict[str, str] = {
    **dict.fromkeys(("problem", "strategy", "level"), "str"),
    **dict.fromkeys(("seed", "budget"), "int64"),
    **dict.fromkeys(("default", "best", "speedup"), "float64"),
    **dict.fromkeys(("evaluations", "failed"), "int64"),
    **dict.fromkeys(("seconds", "evaluation_seconds", "remeasured", "unique", "optimum"), "float64"),
    **dict.fromkeys(("status", "unit", "fingerprint", "options", "digest"), "str"),
}
COLUMNS = tuple(_TYPES)
"""The columns of a table, in their order; `bbo_suite.Study.runs` says what they are."""
NEEDED = ("problem", "strategy", "seed", "level", "default", "best", "evaluations")
_KEY = ["study", "problem", "fingerprint", "strategy", "options", "seed", "budget"]
SCORED = ("list", "code", "versions", "check")
"""The last columns of a score file, whose lines have checksums (see `board.score_file`)."""
_COST_AT = "best@"
_NOT_ENDED = ("unfinished", "failed")
_MAY_BE_EMPTY = ("seconds", "evaluation_seconds", "remeasured", "unique", "optimum")


def stored_runs(
    folders: Iterable[Path], errors: list[UserError], cutoffs: Sequence[int] = (), label: str = ""
) -> pd.DataFrame:
    """Return the table of the runs in some folders, sorted by problem, strategy and seed.

    Args:
      errors: takes the error of each damaged run, which is left out.
      cutoffs: adds columns `best@N`, the best cost after N evaluations.
      label: stands for the strategy, if not empty: where a plan has it in several variants.
    """
    heads = dict(readable(folders, lambda path: (path, read_checked(path)), errors))
    rows = []
    for part in joined_runs(heads, COUNTED, errors, hashed):
        for path, numbers in zip(part.paths, counted(part.frame, part.lengths), strict=True):
            run = result_of(path, heads[path], numbers)
            rows.append(row_of(run, digest_of_rows(path, heads[path])) | ({"strategy": label} if label else {}))
            rows[-1] |= {f"{_COST_AT}{n}": run.best(min(n, run.evaluations)) for n in cutoffs}
    return table_of(rows).sort_values(["problem", "strategy", "seed"], kind="stable", ignore_index=True)


def valid_runs(folders: Iterable[Path], cutoffs: Sequence[int] = (), label: str = "") -> pd.DataFrame:
    """Return the table of the runs in some folders, as `stored_runs` does.

    Raises:
      UserError: a run is damaged.
    """
    errors: list[UserError] = []
    found = stored_runs(folders, errors, cutoffs, label)
    if errors:
        raise errors[0]
    return found


def row_of(run: RunResult, digest: str = "") -> dict[str, Any]:
    """Return the row of a run."""
    head, again = run.head, run.remeasured(run.evaluations) if run.finalists else None
    return {
        **{name: head[name] for name in ("problem", "strategy", "seed", "budget", "unit", "fingerprint")},
        LEVEL: run.level.word,
        "default": head["default"],
        "best": run.best(run.evaluations),
        "speedup": run.final_speedup,
        "evaluations": run.evaluations,
        "failed": run.failures.total(),
        "seconds": run.strategy_seconds,
        "evaluation_seconds": run.evaluation_seconds,
        "remeasured": math.nan if again is None else again,
        "unique": run.unique,
        "optimum": math.nan if head.get("optimum") is None else head["optimum"],
        "status": run.status,
        "options": "" if head.get("options") is None else json.dumps(head["options"], sort_keys=True),
        "digest": digest,
    }


def table_of(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the table of some rows (see `row_of`)."""
    import pandas as pd

    rows = list(rows)
    others = [name for name in (rows[0] if rows else ()) if name not in COLUMNS]
    first = [name for name in others if name == "study"]
    return pd.DataFrame(rows, columns=[*first, *COLUMNS, *(name for name in others if name != "study")]).astype(_TYPES)


def write_runs(file: Path, runs: pd.DataFrame) -> None:
    """Write a table of runs.

    Raises:
      UserError: the file cannot be written.
    """
    with disk_errors(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as unfinished:
            packed = {"method": "gzip", "mtime": 0} if file.suffix == ".gz" else None
            rounded = runs.assign(
                **{
                    name: runs[name].map(lambda number: float(f"{number:.3g}"))
                    for name in ("seconds", "evaluation_seconds")
                }
            )
            table = escape_formulas(rounded)
            table.to_csv(unfinished, index=False, lineterminator="\n", float_format="%.10g", compression=packed)


def read_runs(file: Path) -> pd.DataFrame:
    """Return the table of runs in a file: `COLUMNS`, any others that the file has, and `study`, "" if it has none.

    Where a column but those in `NEEDED` is missing, the budget is the number of evaluations, no candidate failed, and
    the rest is unknown: nan or "". Tables of older versions have `uses_structure` and `uses_parts` instead of `level`,
    and `strategy_seconds` instead of `seconds`.

    Raises:
      UserError: the file cannot be read, was changed though its lines have checksums, or is not such a table.
    """
    import pandas as pd

    try:
        _check_if_checked(file)
        empty = {name: ["", "nan"] for name in (*_MAY_BE_EMPTY, "strategy_seconds")}
        texts = {name: "str" for name, kind in _TYPES.items() if kind == "str"} | {"study": "str"}
        frame = _completed(pd.read_csv(file, keep_default_na=False, na_values=empty, dtype=texts), file)
        for name in filter(re.compile(_COST_AT).match, map(str, frame)):
            frame[name] = pd.to_numeric(frame[name])  # of shorter runs they are empty
        _check(frame)
        return frame
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"cannot read {file}: {getattr(error, 'strerror', None) or error}") from None
    except (ValueError, OverflowError) as error:
        raise UserError(f"{file} is not a table of runs ({error}); restore it, or rename the file") from None


def _check_if_checked(file: Path) -> None:
    """Check the lines of a table if it is a score file."""
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as lines:
        if next(lines, b"").rstrip().endswith(",".join(SCORED).encode()):
            check_lines(file, (line.decode() for line in lines))


def check_lines(file: Path, lines: Iterable[str]) -> None:
    """Check the checksums of a file's lines from the second on.

    Raises:
      UserError: a line was changed.
    """
    for number, line in enumerate(lines, 2):
        try:
            without_checksum(line)
        except ValueError:
            what = f"{file}, line {number} was changed after it was written"
            raise UserError(f"{what}; write it again by `score`") from None


def _completed(frame: pd.DataFrame, file: Path) -> pd.DataFrame:
    """Return a table with the columns that it lacks."""
    if LEVEL in frame or OLDER_FLAGS[0] in frame:
        frame[LEVEL] = [Level.of(row).word for row in frame.to_dict("records")]
    if "seconds" not in frame and "strategy_seconds" in frame:
        frame = frame.rename(columns={"strategy_seconds": "seconds"})
    if missing := [name for name in NEEDED if name not in frame]:
        raise UserError(f"{file} is not a table of runs: it has no column {missing[0]!r}; add it, or rename the file")
    unknown: dict[str, Any] = {"budget": frame["evaluations"], "failed": 0, **dict.fromkeys(_MAY_BE_EMPTY, math.nan)}
    for name in ("study", *COLUMNS):
        if name not in frame and name not in ("status", "speedup"):
            frame[name] = unknown.get(name, "")
    frame["speedup"] = math.nan
    frame = frame.astype({name: kind for name, kind in _TYPES.items() if name in frame})
    if "status" not in frame:
        frame["status"] = np.where(frame["evaluations"] >= frame["budget"], "budget", "covered")
    frame["speedup"] = frame["remeasured"].where(frame["remeasured"].notna(), _speedups(frame))
    for name in ("study", *(name for name, kind in _TYPES.items() if kind == "str")):
        frame[name] = frame[name].map(unescape_formula)
    first = ["study", *COLUMNS]
    return frame[[*first, *(name for name in frame if name not in first)]]


def _speedups(runs: pd.DataFrame) -> NDArray[np.float64]:
    """Return the default's cost / the best cost of each run."""
    default, best = runs["default"].to_numpy(), runs["best"].to_numpy()
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return np.where(default == best, 1.0, default / best)


def _check(frame: pd.DataFrame) -> None:
    """Refuse a table whose numbers no run can have.

    Raises:
      ValueError: says which.
    """
    if not (abs(frame["default"]) < math.inf).all() or frame["best"].isna().any():
        raise ValueError("a default or a best cost is no number")
    if (frame[["evaluations", "budget"]] < 1).any(axis=None):
        raise ValueError("a run has no evaluation")
    if frame.duplicated(_KEY).any():
        raise ValueError("it has a run twice")


def run_tables(study: Path) -> list[Path]:
    """Return the tables in a study's folder: `runs.csv`, files whose names end in `-runs.csv`, and packed ones."""
    return sorted(
        path for end in ("", ".gz") for path in (*study.glob(f"runs.csv{end}"), *study.glob(f"*-runs.csv{end}"))
    )


def read_studies(file: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the name and the runs of each study in a table: a study has one budget, in evaluations.

    Raises:
      UserError: the file cannot be read, or is not such a table.
    """
    own = file.name.removesuffix(".gz").removesuffix("runs.csv").rstrip("-")
    name = f"{file.parent.name}-{own}" if own else file.parent.name
    for study, of_study in ((str(study), group) for study, group in read_runs(file).groupby("study", sort=True)):
        several = of_study["budget"].nunique() > 1
        for budget, runs in of_study.groupby("budget", sort=True):
            yield f"{study or name}-{budget}" if several else (study or name), runs.reset_index(drop=True)


class Published(NamedTuple):
    """A published study: the folder of its table, and its runs."""

    name: str
    folder: Path
    runs: pd.DataFrame

    @property
    def suffix(self) -> str:
        """What the names of its files have, because a folder may hold several: "-200" for a budget."""
        return self.name.removeprefix(self.folder.name)


def published(study: str, results: Path) -> list[Published]:
    """Return the published studies of a name: all of a folder's tables, or the one of exactly that name.

    Raises:
      UserError: a table is damaged.
    """
    folders = [path for path in sorted(results.glob("*")) if study == path.name or study.startswith(f"{path.name}-")]
    found = [
        Published(name, path, runs)
        for path in folders
        for file in run_tables(path)
        for name, runs in read_studies(file)
    ]
    exact = [each for each in found if each.name == study]
    return exact[:1] or [each for each in found if each.folder.name == study]


def results_of(runs: pd.DataFrame) -> list[RunResult]:
    """Return the results of a table's runs, of which the costs are known at the end only."""
    return [_result(row) for row in runs.to_dict("records")]


def _result(row: Mapping[Any, Any]) -> RunResult:
    head = {name: row[name] for name in ("problem", "fingerprint", "strategy", "seed", "budget", "default", "unit")}
    head |= {LEVEL: row[LEVEL], "batch": None}
    head["options"] = json.loads(row["options"]) if row["options"] else None
    head["optimum"] = None if math.isnan(row["optimum"]) else row["optimum"]
    found, again = bool(np.isfinite(row["best"])), not math.isnan(row["remeasured"])
    return RunResult(
        problem=row["problem"],
        strategy=row["strategy"],
        head=head,
        ended="" if row["status"] in _NOT_ENDED else row["status"],
        error="",
        evaluations=row["evaluations"],
        unique=row["unique"],
        failures=Counter({"failed": row["failed"]} if row["failed"] else {}),
        reasons=Counter(),
        steps=np.ones(int(found), np.int64),  # when it was found is not known, only that it was
        costs=np.full(int(found), row["best"]),
        strategy_seconds=row["seconds"],
        evaluation_seconds=row["evaluation_seconds"],
        noise=math.nan,
        finalists=[Finalist(1, "", (row["remeasured"],) * ROUNDS)] if found and again else [],
    )


def last_rows(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per run, its last evaluation, in the form of `bbo_suite.load`, for figures that need no more."""
    columns: dict[str, Any] = {
        "evaluation": runs["budget"],
        "value": runs["best"],
        "status": "ok",
        "speedup": _speedups(runs),
    }
    columns |= {"strategy_seconds": runs["seconds"] / runs["evaluations"], "parameters": 0}
    columns |= {"evaluation_seconds": runs["evaluation_seconds"] / runs["evaluations"]}
    again = [REMEASURED] if runs["remeasured"].notna().any() else []
    frame = runs[["problem", "strategy", "seed", "default", "budget", "unit", LEVEL, *again]].assign(**columns)
    return frame.astype({"problem": "category", "strategy": "category"})


_FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""The start of a cell that a spreadsheet would calculate, or that carries a quote against this already."""


def escape_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose texts no spreadsheet takes for a formula: they get a quote before them."""
    for name in frame.select_dtypes(exclude=["number", "bool"]):
        column = frame[name]
        if column.dtype == "category":
            frame[name] = column.cat.rename_categories([_escaped(text) for text in column.cat.categories])
        else:
            frame[name] = [_escaped(cell) if isinstance(cell, str) else cell for cell in column]  # some are empty
    return frame


def _escaped(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) else text


def unescape_formula(cell: str) -> str:
    """Return the text of a cell as it was before `escape_formulas`."""
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell) else cell
