"""`python -m bbo_suite`."""

from __future__ import annotations

import os
import sys

from .errors import UserError


def main() -> None:
    """Run the command line; a user's mistake is one sentence on standard error and exit code 1."""
    from .cli import INTERRUPTED, app

    try:
        app()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("ended; what was stored is kept: run the same command to resume", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # the reader, say `head`, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


if __name__ == "__main__":
    main()
