"""`check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import UserError
from .app import AsLines, app, json_line


@app.command()
def check(file: Annotated[Path, typer.Argument(help="The plugin file to check.")], as_json: AsLines = False) -> None:
    """Check that a plugin follows the rules for strategies and problems."""
    from ..conformance.kit import check_plugin
    from .tables import reserved

    failed, checks = 0, check_plugin(file)
    while True:
        with reserved(as_json):  # plugins may print
            found = next(checks, None)
        if found is None:
            break
        subject, rule, complaint = found
        line = f"{'FAIL' if complaint else 'ok  '} {subject}: {rule}{f': {complaint}' if complaint else ''}"
        print(json_line(dict(zip(("subject", "rule", "complaint"), found, strict=True))) if as_json else line)
        failed += bool(complaint)
    if failed:
        raise UserError(f"{file} breaks {failed} of the rules; see the lines marked FAIL")
