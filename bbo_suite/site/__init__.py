"""All studies of a folder as a static site: leaderboards, a report for each study, and the numbers as files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ..errors import UserError, error_boundary, leave_out
from ..files.writing import disk_errors, replacing, write_json
from ..registry import Registry
from ..report import page
from ..report.page import html, render
from ..store.run_table import write_runs
from .boards import boards
from .studies import Entry, best_known, number_of_studies, points_file, studies, table_of_runs

__all__ = ["number_of_studies", "write"]


def write(
    results: Path,
    out: Path,
    plugins: Sequence[Path] = (),
    show: Callable[[int, str], None] = lambda number, name: None,
) -> Path:
    """Write the site of all studies in a folder and return the path of its first page.

    Beside it are `runs.csv`, one row per run; `points.json`, best known cost / cost of each run, by task; and
    `STUDY/report.html`. A study that cannot be read is left out and named.

    Args:
      plugins: files that define problems of the studies; small ones are enumerated for an exact baseline.
      show: called with the number of studies that are written, and the name of the next.

    Raises:
      UserError: the folder has no study or would contain the site, or the site cannot be written.
    """
    if out.resolve().is_relative_to(results.resolve()):
        raise UserError(f"{out} is inside the folder of studies {results}; choose another --out")
    registry, entries = Registry(tuple(plugins)), list[Entry]()
    for study in studies(results):
        show(len(entries), study.name)
        try:
            with error_boundary(f"study {study.name}", "its report"):
                report = page(study, registry=registry)
                entry = Entry.of(study, report)
                text = html(report)
        except UserError as error:
            leave_out(error)
            continue
        entries.append(entry)
        _write_text(out / entry.folder / "report.html", text)
    if not entries:
        raise UserError(f"there is no study in {results}; make one with `run --study NAME`")
    runs = [run for entry in entries for run in entry.runs]
    known = best_known(runs)
    with disk_errors(out):
        write_runs(out / "runs.csv", table_of_runs(entries))
        write_json(out / "points.json", points_file(entries, known))
    shown = list(boards(entries, known))
    _write_text(out / "index.html", render("site.html", entries=entries, boards=shown, runs=len(runs)))
    return out / "index.html"


def _write_text(file: Path, text: str) -> None:
    with disk_errors(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as unfinished:
            unfinished.write_text(text, encoding="utf-8", errors="backslashreplace")
