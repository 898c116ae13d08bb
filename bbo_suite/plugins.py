"""Files that define a strategy or a problem, or one of each."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import inspect
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from .core.problem import Problem
from .core.strategy import Strategy
from .errors import UserError, one_line

_PREFIX = "bbo_plugin_"
"""Of the names of the modules that plugin files are."""


def classes_of(path: Path, base: Any) -> list[Any]:  # noqa: ANN401 - Strategy or Problem
    """Return the concrete subclasses of `base` that a plugin file defines: none or one.

    Raises:
      UserError: the file cannot be read or run, or defines neither a strategy nor a problem, or two of a kind.
    """
    found = [c for c in _defined(path, Strategy) + _defined(path, Problem) if issubclass(c, base)]
    if not _defined(path, Strategy) + _defined(path, Problem):
        raise UserError(f"plugin {path} defines no subclass of bbo_suite.Strategy or bbo_suite.Problem; add one")
    if len(found) > 1:
        names = " and ".join(c.__name__ for c in found)
        raise UserError(
            f"plugin {path} defines more than one {base.__name__.lower()} ({names}); give each its own file"
        )
    return found


def file_of(found: type) -> Path | None:
    """Return the plugin file that defines a class; None for any other class."""
    return Path(str(sys.modules[found.__module__].__file__)) if found.__module__.startswith(_PREFIX) else None


def _defined(path: Path, base: type) -> list[type]:
    module = _import(path)
    classes = [c for c in vars(module).values() if inspect.isclass(c) and c.__module__ == module.__name__]
    return [c for c in classes if issubclass(c, base) and not inspect.isabstract(c)]


def _import(path: Path) -> ModuleType:
    if not path.is_file():
        raise UserError(f"there is no plugin file {path}; give the path of a Python file")
    if path.suffix != ".py":
        raise UserError(f"plugin {path} is no Python file; its name must end in .py")
    return _execute(path.resolve(), path.stem)


@functools.lru_cache
def _execute(path: Path, stem: str) -> ModuleType:
    """Run a file under a name that no other file has."""
    name = f"{_PREFIX}{hashlib.sha256(os.fsencode(path)).hexdigest()[:8]}_{stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look a class's module up here
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        place = f"{Path(error.filename or path).name}, line {error.lineno}"
        raise UserError(f"plugin {path} has a syntax error ({place}): {error.msg}; mend it") from error
    except (Exception, SystemExit) as error:
        why = f"{type(error).__name__}: {one_line(error)}"
        raise UserError(f"plugin {path} raised an error when it was imported ({why}); mend it") from error
    return module
