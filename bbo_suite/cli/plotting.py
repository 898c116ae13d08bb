"""`plot`: the figures of a study or of a run, and what was found."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UserError
from .app import Plugins, Results, StudyName, app

if TYPE_CHECKING:
    from ..figures.exploration import Names
    from ..registry import Registry
    from ..verify.best import Best


class Format(StrEnum):
    """File format of a figure."""

    SVG = "svg"
    PNG = "png"
    PDF = "pdf"


class Style(StrEnum):
    """What a figure is made for."""

    SCREEN = "screen"
    PAPER = "paper"


@app.command()
def plot(
    study: StudyName,
    figure: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Draw only this figure. May be repeated.")
    ] = None,
    problem: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Draw only this problem. May be repeated.")
    ] = None,
    format_: Annotated[
        list[Format] | None,
        typer.Option("--format", help="File format (default: svg and png; pdf with --style paper). May be repeated."),
    ] = None,
    style: Annotated[
        Style, typer.Option(help="paper: one column wide, with the captions in files of their own.")
    ] = Style.SCREEN,
    run: Annotated[
        str | None,
        typer.Option(
            metavar="PROBLEM/STRATEGY/SEED",
            help="Draw what this run explored; with --figure program, what it found.",
        ),
    ] = None,
    results: Results = Path("results"),
    plugin: Plugins = None,
) -> None:
    """Draw a study's figures and print their paths. Standard error lists the figures that need more data.

    The exit code is 1 if one of them was asked for.

    `--figure program` draws what was found for each problem: its kernels before and after, or a table of the changes.
    It evaluates candidates, so it is drawn only if asked for.
    """
    from ..registry import Registry

    for_paper = style is Style.PAPER
    formats = tuple(format_ or ([Format.PDF] if for_paper else [Format.SVG, Format.PNG]))
    if "program" in (figure or ()):
        if for_paper or len(figure or ()) > 1:
            raise UserError("--figure program is drawn alone, for the screen; leave out --style and other figures")
        folder = None if run is None else _run_folder(study, results, run)
        paths = _found(Registry(tuple(plugin or ())), study, results, problem, folder, formats)
    elif run is not None:
        paths = _run(study, results, run, formats, for_paper, Registry(tuple(plugin or ())))
    else:
        paths = _study(study, results, tuple(figure or ()), tuple(problem or ()), formats, for_paper)
    for path in paths:
        print(path, flush=True)


def _study(
    study: str, results: Path, names: Sequence[str], problems: Sequence[str], formats: Sequence[str], for_paper: bool
) -> Iterator[Path]:
    from .. import figures
    from ..store.folders import check_problems
    from ..study import Study

    opened = Study(study, results)
    frame, diagnostics = opened.drawable(), None if opened.only_results else opened.diagnostics()
    if problems:
        check_problems(problems, frame["problem"].unique(), study)
        frame = frame[frame["problem"].isin(problems)]
        diagnostics = None if diagnostics is None else diagnostics[diagnostics["problem"].isin(problems)]
    asked = bool(names)
    if opened.only_results:
        names = names or [name for name, figure in figures.FIGURES.items() if figure.only_results]
    folder = results / opened.figures.relative_to(results.absolute())
    folder = folder / "paper" if for_paper else folder
    yield from figures.write(frame, folder, diagnostics, names, formats, for_paper)
    reasons = figures.left_out(frame, diagnostics, names)
    if reasons:
        words = "; ".join(f"{name} ({reason})" for name, reason in reasons.items())
        print(f"not drawn: {words}", file=sys.stderr)
        if asked:
            raise typer.Exit(1)


def _run(
    study: str, results: Path, run: str, formats: Sequence[str], for_paper: bool, registry: Registry
) -> Iterator[Path]:
    from .. import figures
    from ..store import frames

    parts = run.rsplit("/", 2)
    name = _run_folder(study, results, run).name
    frame = frames.load(study, results, ["config"], only=name)
    if frame.empty or figures.FIGURES["exploration"].missing(frame):
        raise UserError(f"run {run!r} has no evaluations to draw yet; run its command again")
    names = _parameters(registry, parts[0], int(frame["parameters"].iloc[0]))
    drawn = figures.FIGURES["exploration"](frame, names=names)
    folder = _folder(results / study, for_paper)
    yield from figures.save([(f"exploration-{name}", *drawn)], folder, formats, for_paper)


def _found(
    registry: Registry,
    study: str,
    results: Path,
    problems: Sequence[str] | None,
    run: Path | None,
    formats: Sequence[str],
) -> Iterator[Path]:
    """Draw the best candidate of each problem, or of a run's folder; what cannot be drawn is named on standard error.

    Args:
      problems: ids of those to draw (default: all).

    Raises:
      UserError: nothing can be drawn.
    """
    from ..figures import save
    from ..files.names import folder_name
    from ..store.folders import study_path
    from .tables import each_reserved

    complaints: list[str] = []
    folder, drawn = _folder(study_path(study, results), for_paper=False), False
    bests = _bests(registry, study, results, problems, run)
    for best, figure in each_reserved(_drawings(bests, complaints)):  # problems may print
        yield from save([(f"program-{run.name if run else folder_name(best.problem)}", *figure)], folder, formats)
        drawn = True
    if not drawn:
        raise UserError(complaints[0] if complaints else f"study {study!r} has no run that can be read")
    for complaint in complaints:
        print(f"not drawn: {complaint}", file=sys.stderr)


def _bests(
    registry: Registry,
    study: str,
    results: Path,
    problems: Sequence[str] | None,
    run: Path | None,
) -> Iterator[Best]:
    from ..store.stored_run import open_run
    from ..verify.best import best_of, best_of_run

    if run is None:
        yield from best_of(registry, study, results, simplify=True, problems=problems)
    else:
        yield best_of_run(registry, open_run(run), simplify=True)


def _drawings(bests: Iterator[Best], complaints: list[str]) -> Iterator[tuple[Best, tuple]]:
    from ..figures import outcome

    for best in bests:
        try:
            figure = outcome.draw(best)
        except UserError as error:
            complaints.append(str(error))
        else:
            yield best, figure


def _run_folder(study: str, results: Path, run: str) -> Path:
    from ..files.names import folder_name
    from ..store.folders import study_path

    folder = study_path(study, results) / folder_name(*run.rsplit("/", 2))
    if not folder.exists():
        raise UserError(f"there is no run {run!r} in study {study!r}; write it as PROBLEM/STRATEGY/SEED")
    return folder


def _folder(study: Path, for_paper: bool) -> Path:
    return study / "figures" / "paper" if for_paper else study / "figures"


def _parameters(registry: Registry, problem_id: str, count: int) -> Names | None:
    """Return the names of a problem's parameters; None if it is not available or their number has changed."""
    try:
        space = registry.problem(problem_id).space
    except UserError:
        return None
    return space.name if len(space) == count else None
