"""Versions of the Python packages that contain compilers."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from bbo_suite import UserError
from bbo_suite.core.libraries import require
from bbo_suite.files.cache import cache_folder


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


def zig(owner: str) -> tuple[str, dict[str, str]]:
    """Return the path of the zig from pip, whose clang needs no compiler of the system, and variables for its caches.

    Args:
      owner: what needs it, for the error.

    Raises:
      UserError: it is not installed.
    """
    require("ziglang", owner, "bbo_suite[c]")
    spec = find_spec("ziglang")
    assert spec is not None and spec.submodule_search_locations
    folder = cache_folder("zig")
    caches = {"ZIG_GLOBAL_CACHE_DIR": str(folder), "ZIG_LOCAL_CACHE_DIR": str(folder / "local")}
    return str(Path(spec.submodule_search_locations[0], "zig")), caches


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)[:2]))
