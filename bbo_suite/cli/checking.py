"""`check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import UserError
from .app import app


@app.command()
def check(file: Annotated[Path, typer.Argument(help="A plugin file.")]) -> None:
    """Run the conformance kit on a plugin: does it keep the contract of a strategy or a problem?"""
    from ..conformance.kit import check_plugin

    failed = 0
    for subject, rule, complaint in check_plugin(file):
        print(f"{'FAIL' if complaint else 'ok  '} {subject}: {rule}{f': {complaint}' if complaint else ''}")
        failed += bool(complaint)
    if failed:
        raise UserError(f"{file} breaks {failed} rules of the contract; see the lines marked FAIL")
