"""Plugin files: each defines a strategy, a problem, a policy of a fleet, or one of each."""

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
"""Prefix of the module names of plugin files."""


def classes_of(path: Path, base: Any) -> list[Any]:  # noqa: ANN401 - Strategy, Problem or Policy
    """Return the concrete subclass of `base` that a plugin file defines, in a list that is empty if there is none.

    Raises:
      UserError: the file cannot be read or run, defines none of these, or defines two of a kind.
    """
    module = _import(path)
    every = [c for kind in _kinds() for c in _defined(module, kind)]
    found = [c for c in every if issubclass(c, base)]
    if not every:
        kinds = "bbo_suite.Strategy, bbo_suite.Problem or bbo_suite.fleet.policy.Policy"
        raise UserError(f"plugin {path} defines no subclass of {kinds}; add one")
    if len(found) > 1:
        names = " and ".join(c.__name__ for c in found)
        raise UserError(
            f"plugin {path} defines more than one {base.__name__.lower()} ({names}); give each its own file"
        )
    return found


def file_of(found: type) -> Path | None:
    """Return the plugin file that defines a class; None for any other class."""
    return Path(str(sys.modules[found.__module__].__file__)) if found.__module__.startswith(_PREFIX) else None


def _kinds() -> tuple[Any, ...]:
    """Return the contracts that a plugin file may fulfil."""
    fleet = sys.modules.get("bbo_suite.fleet.policy")  # a file that defines a policy has imported it
    return (Strategy, Problem) if fleet is None else (Strategy, Problem, fleet.Policy)


def _defined(module: ModuleType, base: type) -> list[type]:
    classes = [c for c in vars(module).values() if inspect.isclass(c) and c.__module__ == module.__name__]
    return [c for c in classes if issubclass(c, base) and not inspect.isabstract(c)]


def _import(path: Path) -> ModuleType:
    if not path.is_file():
        raise UserError(f"there is no plugin file {path}; give the path of a Python file")
    if path.suffix != ".py":
        raise UserError(f"plugin {path} is not a Python file; its name must end in .py")
    return _execute(path.resolve(), path.stem)


@functools.lru_cache
def _execute(path: Path, stem: str) -> ModuleType:
    """Run a file as a module whose name is unique to its path."""
    name = f"{_PREFIX}{hashlib.sha256(os.fsencode(path)).hexdigest()[:8]}_{stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle find the module of a class here
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        place = f"{Path(error.filename or path).name}, line {error.lineno}"
        raise UserError(f"plugin {path} has a syntax error ({place}): {error.msg}; fix it") from error
    except (Exception, SystemExit) as error:
        why = f"{type(error).__name__}: {one_line(error)}"
        raise UserError(f"plugin {path} raised an error when it was imported ({why}); fix it") from error
    return module
