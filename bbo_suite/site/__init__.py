"""All studies of a folder as a static site: leaderboards, a report for each study, and the numbers as files."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr
from pathlib import Path

from ..errors import UserError, error_boundary, leave_out, noting_what_is_left_out
from ..files.writing import disk_errors, write_json, write_text
from ..registry import Registry
from ..report import page
from ..report.page import html, render
from ..runs.processes import default_jobs, in_processes
from ..store.run_table import write_runs
from .overview import board, boards, is_board, overview
from .studies import Entry, Source, best_known, points_file, read, sources, table_of_runs

__all__ = ["write"]


def write(
    results: Path,
    out: Path,
    plugins: Sequence[Path] = (),
    show: Callable[[int, int, str], None] = lambda number, total, name: None,
) -> Path:
    """Write the site of all studies in a folder and return the path of its first page.

    Beside it are `runs.csv`, one row per run; `points.json`, best known cost / cost of each run, by task; and
    `STUDY/report.html`. A study that cannot be read is left out and named. Several processes write many reports.

    Args:
      plugins: files that define problems of the studies; small ones are enumerated for an exact baseline.
      show: called with the number of studies that are written, their total, and what is written next.

    Raises:
      UserError: the folder has no study or would contain the site, or the site cannot be written.
    """
    if out.resolve().is_relative_to(results.resolve()):
        raise UserError(f"{out} is inside the folder of studies {results}; choose another --out")
    entries, found = list[Entry](), sources(results)
    for number, entry in enumerate(_reports(found, out, Registry(tuple(plugins)))):
        entries += [entry] if entry else []
        show(number, len(found), found[number].name)
    if not entries:
        raise UserError(f"there is no study in {results}; make one with `run --study NAME`")
    show(len(found), len(found), "the first page")
    runs = [run for entry in entries for run in entry.runs]
    known = best_known(runs)
    with disk_errors(out):
        write_runs(out / "runs.csv", table_of_runs(entries))
        write_json(out / "points.json", points_file(entries, known))
    content = {"entries": entries, "boards": list(boards(entries, known)), "runs": len(runs)}
    text = render("site.html", **content, overview=overview(runs, known), board=board(entries))
    write_text(out / "index.html", text, errors="backslashreplace")
    show(len(found), len(found), "done")
    return out / "index.html"


_FOR_A_PROCESS = 4
"""Reports that are worth the start of a process."""


def _reports(found: Sequence[Source], out: Path, registry: Registry) -> Iterator[Entry | None]:
    """Write the report of each study and yield its entry; None for one that is left out."""
    jobs = default_jobs(len(found) // _FOR_A_PROCESS, [])
    if jobs < 2:
        yield from (_report(source, out, registry) for source in found)
        return
    for entry, said in in_processes(_report_elsewhere, [(s, out, registry) for s in found], jobs, in_order=True):
        for sentence in said:
            leave_out(sentence)
        yield entry


def _report(source: Source, out: Path, registry: Registry) -> Entry | None:
    try:
        study = read(source)
        with error_boundary(f"study {study.name}", "its report"):
            report = page(study, registry=registry, spaces=is_board(study.name))
            entry, text = Entry.of(study, report), html(report)
    except UserError as error:
        leave_out(error)
        return None
    write_text(out / entry.folder / "report.html", text, errors="backslashreplace")
    return entry


def _report_elsewhere(source: Source, out: Path, registry: Registry) -> tuple[Entry | None, list[str]]:
    """Write a report in a worker process; return its entry, and what is left out, which the parent says."""
    with redirect_stderr(io.StringIO()), noting_what_is_left_out() as said:
        entry = _report(source, out, registry)
    return entry, [sentence.removeprefix("left out: ") for sentence in sorted(said)]
