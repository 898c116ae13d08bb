"""Versions of the Python packages that contain compilers."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version

from bbo_suite import UserError


def installed_version(package: str, least: str, owner: str) -> str:
    """Return the version of an installed package.

    Args:
      least: the oldest version that works, such as `0.10`.
      owner: the family of problems that needs it, for the error.

    Raises:
      UserError: it is not installed, or older.
    """
    try:
        found = version(package)
    except PackageNotFoundError:
        found = ""
    if not found or _numbers(found) < _numbers(least):
        how = f'run: pip install "{package}>={least}"'
        raise UserError(f"{owner} needs {package} {least} or newer, but found {found or 'none'}; {how}")
    return found


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)[:2]))
