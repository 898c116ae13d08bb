"""Optional libraries, and Optuna's log messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from ..errors import UserError


def require(module: str, owner: str, install: str) -> None:
    """Check that a library is installed, without importing it.

    Args:
      module: its top-level module, such as `distributed`.
      owner: what needs it, for the message.
      install: what `pip install` is given: a package, or an extra of this suite such as `bbo_suite[cluster]`.

    Raises:
      UserError: it is not installed; the message names the command that installs it.
    """
    if find_spec(module) is None:
        raise UserError(f'{owner} needs {module}, which is not installed; run: pip install "{install}"')


def refusal(check: Callable[[], object]) -> str:
    """Return why a check refuses, such as `require`: the message of its `UserError`; empty if it does not."""
    try:
        check()
    except UserError as error:
        return str(error)
    return ""


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Silence Optuna's log messages below errors inside the block."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
