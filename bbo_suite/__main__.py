"""`python -m bbo_suite`."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import _stop
from .errors import UserError, noting_what_is_left_out
from .files.names import without_controls

_WATCHED = (["run"], ["score"], ["check"], ["validate"])
"""The commands that run strategies, which may end their process."""
_GRACE_SECONDS = 5.0
"""How long threads may take to end once the command is done."""


def start() -> None:
    """Run the command line as a program: the process of a command that runs strategies is watched by another."""
    _open_closed_streams()
    if sys.argv[1:2] in _WATCHED:
        from .runs.interrupt import watched

        watched(_program)
    else:
        _program()


def _program() -> None:
    """Run the command line, and end also if a plugin has left a thread running, for which Python would wait."""
    try:
        main()
    except SystemExit as end:
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is signal.default_int_handler:  # its traceback would be the last word
                signal.signal(number, signal.SIG_DFL)
        threading.Thread(target=_end_with_threads, args=(end.code,), daemon=True).start()
        raise


def _end_with_threads(code: int) -> None:
    time.sleep(_GRACE_SECONDS)
    if any(not each.daemon and each is not threading.main_thread() for each in threading.enumerate()):
        print("a plugin has left a thread running, which ends with this command", file=sys.stderr)
        os._exit(code)


def main() -> None:
    """Run the command line; a `UserError` prints one sentence on standard error and gives exit code 1."""
    with _shown_streams():
        _main()


def _main() -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that it leaves no process and no folder, as Ctrl-C
    try:
        if signal.getsignal(signal.SIGINT) is _stop:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        _run()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python tries again at its end
        if error.errno not in (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
            raise
        if error.errno != errno.EPIPE:  # not if the reader, such as `head`, has ended
            print(f"error: cannot read or write {error.filename or 'the output'}: {error.strerror}", file=sys.stderr)
        sys.exit(1)


class _Shown:
    """A stream to which names from anywhere may be printed: control characters in them reach no terminal."""

    def __init__(self, stream: Any) -> None:  # noqa: ANN401 - any file of text
        self._stream = self.rich_proxied_file = stream  # rich writes its own control characters to the latter

    def write(self, text: str) -> int:
        """Write text; returns its length."""
        self._stream.write(without_controls(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._stream, name)


@contextmanager
def _shown_streams() -> Iterator[None]:
    before = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, io.TextIOWrapper):  # a character that the terminal cannot show must not end the program
            stream.reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = map(_Shown, before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _open_closed_streams() -> None:
    """Open the null device for streams that are closed: files of a study would otherwise get their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115, PTH123 - until the end
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


def _run() -> None:
    from .cli import UsageError, app

    completion = {"--install-completion", "--show-completion"} & set(sys.argv)
    with noting_what_is_left_out() as left_out:
        try:  # shells complete the script, not `python -m bbo_suite`
            code = app(prog_name="bbo-suite" if completion else None, standalone_mode=False)
        except UsageError as error:
            code = _refused(error)
        finally:
            sys.stdout.flush()  # inside the `try` of `main`, which handles a broken pipe
    sys.exit(code or int(bool(left_out)))


def _refused(error: Any) -> int:  # noqa: ANN401 - typer's UsageError, which it does not export
    """Print a mistake in the use of the command line as one sentence, and return the exit code."""
    sentence = error.format_message().replace("Value error, ", "").strip().rstrip(".")
    if sentence:  # it is empty where typer has printed the help instead
        command = error.ctx.command_path if error.ctx else "python -m bbo_suite"
        end = "" if sentence.endswith("?") else "."
        print(f"error: {sentence[0].lower()}{sentence[1:]}{end} Help: {command} --help", file=sys.stderr)
    return int(error.exit_code)


if __name__ == "__main__":
    start()
