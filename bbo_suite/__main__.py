"""`python -m bbo_suite`."""

from __future__ import annotations

import io
import os
import sys

from .errors import UserError


def main() -> None:
    """Run the command line; a `UserError` prints one sentence on standard error and gives exit code 1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a character that the terminal cannot show must not end the program
            stream.reconfigure(errors="backslashreplace")
    try:
        _run()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader, such as `head`, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _run() -> None:
    from .cli import app

    completion = {"--install-completion", "--show-completion"} & set(sys.argv)
    try:
        app(prog_name="bbo-suite" if completion else None)  # shells complete the script, not `python -m bbo_suite`
    finally:
        sys.stdout.flush()  # inside the `try` of `main`, which handles a broken pipe


if __name__ == "__main__":
    main()
