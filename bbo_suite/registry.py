"""What strategies and problems there are: entry points of installed packages, and files given as plugins."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from .errors import UserError, blame, did_you_mean
from .problem_base import Problem
from .strategy_base import Strategy


@dataclass(frozen=True)
class Registry:
    """Finds strategies and problems by id; loading is lazy, so that listing imports nothing heavy.

    Attributes:
      plugins: files that define one strategy, one problem, or one of each; the file's stem is the id or the family.
    """

    plugins: tuple[Path, ...] = ()

    def strategies(self) -> dict[str, Callable[[], type[Strategy]]]:
        """Return the loader of each strategy by id."""
        return self._known("bbo_suite.strategies", Strategy)

    def families(self) -> dict[str, Callable[[], type[Problem]]]:
        """Return the loader of each family of problems by name."""
        return self._known("bbo_suite.problems", Problem)

    def _known(self, group: str, base: Any) -> dict[str, Callable[[], Any]]:  # noqa: ANN401 - Strategy or Problem
        known: dict[str, Callable[[], Any]] = {
            point.name: functools.partial(_load, point.load, point.name) for point in entry_points(group=group)
        }
        for path in self.plugins:
            for found in classes_of(path, base):
                known[path.stem] = functools.partial(_same, found)
        return known

    def strategy(self, name: str) -> type[Strategy]:
        """Return a strategy's class.

        Raises:
          UserError: there is none of that name, or it cannot be imported.
        """
        known = self.strategies()
        if name not in known:
            raise UserError(f"there is no strategy {name!r}.{did_you_mean(name, known)}")
        return known[name]()

    def instances(self) -> list[str]:
        """Return the ids of all problems."""
        return [f"{name}/{instance}" for name, load in self.families().items() for instance in load().instances]

    def problem(self, problem_id: str) -> Problem:
        """Return the problem `family/instance`, or `family:path` from a file; loaded once per process.

        Raises:
          UserError: there is none of that id, or its file cannot be read.
        """
        return _problem(self, problem_id)


@functools.lru_cache(maxsize=4)
def _problem(registry: Registry, problem_id: str) -> Problem:
    separator = min(":/", key=lambda s: (problem_id + s).index(s))
    family_name, _, instance = problem_id.partition(separator)
    families = registry.families()
    if family_name not in families:
        hint = did_you_mean(family_name, families)
        raise UserError(f"there is no problem {problem_id!r}: {family_name!r} is no family.{hint}")
    family = families[family_name]()
    with blame(f"problem {problem_id}", "loading"):
        problem = family.from_file(instance) if separator == ":" else _instance(family, family_name, instance)
    problem.id = problem_id
    return problem


def _instance(family: type[Problem], name: str, instance: str) -> Problem:
    base = instance.partition("@")[0]  # what follows is a variant that the family itself understands
    if base not in family.instances:
        hint = did_you_mean(f"{name}/{instance}", [f"{name}/{known}" for known in family.instances])
        raise UserError(f"there is no problem '{name}/{instance}'.{hint}")
    return family(instance)  # type: ignore[call-arg]


def _same(found: Any) -> Any:  # noqa: ANN401 - a class, of either kind
    return found


def _load(load: Callable[[], Any], name: str) -> Any:  # noqa: ANN401 - a class, of either kind
    try:
        return load()
    except ImportError as error:
        raise UserError(f"{name} cannot be imported: {error}; install the package that provides it") from error


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


def _defined(path: Path, base: type) -> list[type]:
    module = _import(path.resolve(), path)
    classes = [c for c in vars(module).values() if inspect.isclass(c) and c.__module__ == module.__name__]
    return [c for c in classes if issubclass(c, base) and not inspect.isabstract(c)]


@functools.lru_cache
def _import(resolved: Path, path: Path) -> ModuleType:
    """Run a plugin file once per process, under a name that no other file has."""
    if not resolved.is_file():
        raise UserError(f"there is no plugin file {path}; give the path of a Python file")
    name = f"bbo_plugin_{hashlib.sha256(str(resolved).encode()).hexdigest()[:8]}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, resolved)
    if spec is None or spec.loader is None:
        raise UserError(f"plugin {path} is no Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look a class's module up here
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise UserError(f"plugin {path} has a syntax error in line {error.lineno}: {error.msg}") from error
    except Exception as error:
        raise UserError(f"plugin {path} raised {type(error).__name__} when it was imported: {error}") from error
    return module
