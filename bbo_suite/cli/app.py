"""What the commands share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import UserError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Compare search strategies on compiler tuning problems.",
)

Results = Annotated[Path, typer.Option(help="The folder that holds studies.")]
Plugins = Annotated[
    list[Path] | None, typer.Option("--plugin", help="A file with a strategy or a problem; its stem is the id.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output and nothing else there.")]
AsLines = Annotated[
    bool, typer.Option("--json", help="Print JSON, one object a line, and nothing else on standard output.")
]
Quiet = Annotated[bool, typer.Option(help="Show no progress.")]

INTERRUPTED = 130


def pairs(texts: list[str]) -> dict[str, str]:
    """Return options by key, from `key=value`."""
    found = dict(text.partition("=")[::2] for text in texts)
    for text in texts:
        if "=" not in text:
            raise UserError(f"option {text!r} has no value; write key=value")
    return found


def strict(facts: dict[str, Any]) -> str:
    """Return one line of JSON; what JSON has no number for is null."""
    return json.dumps(json.loads(json.dumps(facts, default=str), parse_constant=lambda word: None))


def draw(study: str, results: Path) -> None:
    """Draw the first figures of a study and print their paths; `plot` draws all."""
    from .. import figures
    from ..store import frames
    from ..store.diagnostics import load_diagnostics
    from ..store.folders import study_path

    folder, names = study_path(study, results) / "figures", ("convergence", "speedup", figures.MODELS.name)
    for path in figures.write(frames.load(study, results), folder, load_diagnostics(study, results), names):
        print(path)
