"""`check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import UserError
from .app import app


@app.command()
def check(file: Annotated[Path, typer.Argument(help="The plugin file to check.")]) -> None:
    """Check that a plugin follows the rules for strategies and problems."""
    from ..conformance.kit import check_plugin

    failed = 0
    for subject, rule, complaint in check_plugin(file):
        print(f"{'FAIL' if complaint else 'ok  '} {subject}: {rule}{f': {complaint}' if complaint else ''}")
        failed += bool(complaint)
    if failed:
        raise UserError(f"{file} breaks {failed} of the rules; see the lines marked FAIL")
