"""`python -m bbo_suite`."""

from __future__ import annotations

import io
import os
import sys

from .errors import UserError


def main() -> None:
    """Run the command line; a user's mistake is one sentence on standard error and exit code 1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that the terminal cannot show must not end the program
            stream.reconfigure(errors="backslashreplace")
    try:
        _run()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader, say `head`, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _run() -> None:
    from .cli import app

    try:
        app()
    finally:
        sys.stdout.flush()  # here, where a broken pipe can still be caught


if __name__ == "__main__":
    main()
