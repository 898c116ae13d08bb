"""The application, and the options and helpers that several commands share."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from ..core import quantities
from ..errors import UserError

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


class _Group(typer.core.TyperGroup):
    """The commands; Ctrl-C prints one word, where typer would print nothing."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - the context is of a class that typer does not export
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(cls=_Group, no_args_is_help=True, pretty_exceptions_enable=False)

StudyName = Annotated[str, typer.Argument(metavar="STUDY", help="Name of the study.")]
Results = Annotated[Path, typer.Option(metavar="FOLDER", help="The folder of all studies.")]
Plugins = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="FILE",
        help="Python file with a strategy or a problem; the id is the file's name. May be repeated.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, to standard output.")]
AsLines = Annotated[
    bool, typer.Option("--json", help="Print JSON, one object per line, and nothing else, to standard output.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Do not show progress.")]

UsageError: type[Any] = typer.BadParameter.__bases__[0]
"""What the command line's parser raises; the module that defines it differs between versions of typer."""


def count_option(help: str) -> Any:  # noqa: ANN401 - typer's own class is not public
    """Return an option that takes a count, such as `1000` or `1k`."""
    return typer.Option(help=help, metavar="COUNT", parser=_checked(quantities.count))


def seconds_option(help: str) -> Any:  # noqa: ANN401
    """Return an option that takes a duration, such as `90` (seconds) or `10m`."""
    return typer.Option(help=help, metavar="TIME", parser=_checked(quantities.seconds))


def _checked(parse: Callable[[str], float]) -> Callable[[Any], float]:
    def parsed(text: Any) -> float:  # noqa: ANN401 - defaults are numbers
        try:
            return parse(str(text))
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    return parsed


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"bbo_suite {metadata.version('bbo_suite')}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Compare search strategies on compiler tuning problems."""


def key_values(texts: list[str]) -> dict[str, str]:
    """Return a dictionary of texts `key=value`.

    Raises:
      UserError: a text has no `=`.
    """
    found = dict(text.partition("=")[::2] for text in texts)
    for text in texts:
        if "=" not in text:
            raise UserError(f"option {text!r} has no value; write key=value")
    return found


def json_line(facts: dict[str, Any]) -> str:
    """Return one line of JSON; infinities and NaN, which JSON does not have, become null."""
    return json.dumps(json.loads(json.dumps(facts, default=str), parse_constant=lambda word: None))


def draw_main_figures(study: str, results: Path) -> None:
    """Draw the main figures of a study and print their paths; `plot` draws all figures."""
    from .. import figures
    from ..store import frames
    from ..store.folders import study_path

    folder, names = study_path(study, results) / "figures", ("convergence", "speedup")
    for path in figures.write(frames.load(study, results), folder, names=names):
        print(path)
