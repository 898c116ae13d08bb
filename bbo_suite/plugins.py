"""Code from outside of installed packages: plugin files, and the classes and objects that a caller passes.

A plugin file defines a strategy, a problem, a policy of a fleet, or one of each. What a caller passes is held in a form
that travels to other processes.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import inspect
import os
import pickle
import re
import sys
import sysconfig
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, is_dataclass
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

from .core.level import Level
from .core.problem import Problem
from .core.strategy import Strategy
from .core.versions import arguments_version, imports, is_ours, value_version
from .errors import UserError, in_this_folder, one_line, unfit_name
from .files.reading import read_bounded

_PREFIX = "bbo_plugin_"
"""Prefix of the module names of plugin files."""
_LARGEST = 1 << 24
"""Most bytes of a plugin file."""


def classes_of(path: Path, base: Any) -> list[Any]:  # noqa: ANN401 - Strategy, Problem or Policy
    """Return the concrete subclass of `base` that a plugin file defines, in a list that is empty if there is none.

    Raises:
      UserError: the file cannot be read or run, defines none of these, or defines two of a kind.
    """
    module = imported(path)
    every = [c for kind in _kinds() for c in _defined(module, kind)]
    found = [c for c in every if issubclass(c, base)]
    if not every:
        kinds = "bbo_suite.Strategy, bbo_suite.Problem or bbo_suite.fleet.policy.Policy"
        begun = [c for kind in _kinds() for c in _defined(module, kind, abstract=True)]
        lacks = [f"{c.__name__} lacks {' and '.join(sorted(c.__abstractmethods__))}" for c in begun]
        raise UserError(
            f"plugin {path} defines no {'complete ' * bool(begun)}subclass of {kinds}; {', '.join(lacks) or 'add one'}"
        )
    if len(found) > 1:
        names = " and ".join(c.__name__ for c in found)
        raise UserError(
            f"plugin {path} defines more than one {base.__name__.lower()} ({names}); give each its own file"
        )
    for each in found:
        check_class(each)
    return found


def check_class(found: type) -> None:
    """Raise `UserError` for wrong instances of a problem, or a wrong level or options of a strategy."""
    if issubclass(found, Strategy):
        _check_strategy(found)
    listed = getattr(found, "instances", ())
    if isinstance(listed, str) or not isinstance(listed, Collection):
        raise UserError(f"the instances of {found.__name__} are {repr(listed)[:60]}; give a tuple of their names")


def _check_strategy(found: type[Strategy]) -> None:
    level, options = found.level, found.Options
    if not isinstance(level, Level):
        known = ", ".join(f"Level.{each.name}" for each in Level)
        raise UserError(f"the level of {found.__name__} is {repr(level)[:60]}; give one of {known}")
    try:
        fits = is_dataclass(options()) if callable(options) else False
    except TypeError:  # a field has no default
        fits = False
    if not fits:
        raise UserError(f"the Options of {found.__name__} must be a frozen dataclass whose fields have defaults")


def file_of(found: type) -> Path | None:
    """Return the plugin file that defines a class; None for any other class."""
    return Path(str(sys.modules[found.__module__].__file__)) if found.__module__.startswith(_PREFIX) else None


def _kinds() -> tuple[Any, ...]:
    """Return the contracts that a plugin file may fulfil."""
    fleet = sys.modules.get("bbo_suite.fleet.policy")  # a file that defines a policy has imported it
    return (Strategy, Problem) if fleet is None else (Strategy, Problem, fleet.Policy)


def _defined(module: ModuleType, base: type, abstract: bool = False) -> list[Any]:
    classes = [c for c in vars(module).values() if inspect.isclass(c) and c.__module__ == module.__name__]
    return [c for c in classes if issubclass(c, base) and inspect.isabstract(c) == abstract]


def imported(path: Path, what: str = "plugin") -> ModuleType:
    """Return the module of a user's Python file, which is executed once.

    Args:
      what: names the kind of file in errors.

    Raises:
      UserError: there is no such file, or it cannot be executed.
    """
    if not path.is_file():
        raise UserError(f"there is no {what} file {path}; give the path of a Python file")
    if path.suffix != ".py":
        raise UserError(f"{what} {path} is not a Python file; its name must end in .py")
    try:
        read_bounded(path, _LARGEST)
    except (OSError, ValueError) as error:
        raise UserError(f"{what} {path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return _execute(path.resolve(), path.stem, what)


@functools.lru_cache
def _execute(path: Path, stem: str, what: str) -> ModuleType:
    """Run a file as a module whose name is unique to its path."""
    name = f"{_PREFIX}{hashlib.sha256(os.fsencode(path)).hexdigest()[:8]}_{stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle find the module of a class here
    if (
        folder := str(path.parent)
    ) not in sys.path:  # it can import what lies beside it, also later; nothing that is installed is hidden
        sys.path.append(folder)
    try:
        with in_this_folder():
            spec.loader.exec_module(module)
    except SyntaxError as error:
        place = f"{Path(error.filename or path).name}, line {error.lineno}"
        raise UserError(f"{what} {path} has a syntax error ({place}): {error.msg}; fix it") from error
    except (Exception, SystemExit) as error:
        why = f"{type(error).__name__}: {one_line(error)}"
        raise UserError(f"{what} {path} raised an error when it was imported ({why}); fix it") from error
    _check_neighbours(path, what)
    return module


def _check_neighbours(path: Path, what: str) -> None:
    """Check that what a file imports from beside it is not a file of the same name in another folder of a user.

    Raises:
      UserError: it is: a process has one module of a name.
    """
    for name, _ in imports(path.read_bytes()):
        given = getattr(sys.modules.get(name), "__file__", None)
        place = Path(given).resolve() if given else path
        place = place.parent if place.name == "__init__.py" else place
        if place.parent != path.parent and (path.parent / place.name).exists() and not _in_library(place):
            raise UserError(f"{what} {path} imports {name}, but gets that of another folder, {place}; rename one")


@dataclass(frozen=True)
class ProblemRecipe:
    """How to build a problem that was passed as a class or an object.

    Attributes:
      id: `class-name/arguments`.
      made: its class.
      key: equal for equal arguments.
      arguments, keywords: of the constructor.
    """

    id: str
    made: type[Problem]
    key: str
    arguments: tuple[Any, ...] = field(compare=False)
    keywords: Mapping[str, Any] = field(compare=False)

    @classmethod
    def of(cls, made: type[Problem], arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> ProblemRecipe:
        """Return how to build the problem, with its id."""
        words = [_word(value) for value in arguments] + [f"{key}={_word(value)}" for key, value in keywords.items()]
        problem_id = f"{id_of_class(made)}/{'-'.join(words) or 'instance'}"
        if why := unfit_name(problem_id):
            raise UserError(f"the id {problem_id!r}, made of the arguments, {why}; give other arguments")
        key = arguments_version(arguments, keywords) or f"at {id(arguments)}"
        return cls(problem_id, made, key, arguments, keywords)

    def build(self) -> Problem:
        """Return the problem."""
        return self.made(*self.arguments, **self.keywords)


@dataclass(frozen=True)
class Objects:
    """The strategies and problems of a study that were passed as classes and objects.

    Attributes:
      strategies: classes by their ids.
      problems: how to build each of them.
    """

    strategies: tuple[tuple[str, type[Strategy]], ...] = ()
    problems: tuple[ProblemRecipe, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.pickled(),)

    def pickled(self) -> bytes:
        """Return everything as bytes; classes that another process cannot import include their code.

        Raises:
          UserError: a class or an argument cannot be pickled.
        """
        import cloudpickle

        made = [found for _, found in self.strategies] + [problem.made for problem in self.problems]
        try:
            with _by_value({sys.modules[c.__module__] for each in made for c in each.__mro__ if not _is_installed(c)}):
                return cloudpickle.dumps((self.strategies, self.problems))
        except Exception as error:
            names = ", ".join(each.__name__ for each in made)
            why = f"{type(error).__name__}: {one_line(error)}"
            raise UserError(f"{names} cannot be sent to another process ({why}); run with jobs=1") from error


def _unpickled(data: bytes) -> Objects:
    return Objects(*pickle.loads(data))


@contextmanager
def _by_value(modules: set[ModuleType]) -> Iterator[None]:
    """Pickle the classes of some modules with their code: a worker may hold an older version, or not find them."""
    import cloudpickle

    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)


def _is_installed(made: type) -> bool:
    """Return True for a class that any process can import in the same version."""
    module = sys.modules.get(made.__module__)
    file = getattr(module, "__file__", None)
    if is_ours(made) or module is None or made.__module__ == "__main__":  # cloudpickle sends __main__ with its code
        return True
    if file is None:
        return made.__module__.partition(".")[0] in sys.stdlib_module_names
    return _in_library(Path(file))


def _in_library(file: Path) -> bool:
    folders = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    return any(file.is_relative_to(folder) for folder in folders)


def id_of_class(made: type) -> str:
    """Return a class's name in lower case with dashes: `HillClimb` is `hill-climb`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_+", "-", made.__name__)
    return words.lower().strip("-")


def _word(value: object) -> str:
    """Return an argument as a part of an id."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, str | int | float | Path | None) and len(text := str(value)) <= 60 and text:
        return re.sub(r"\s+", "_", text)
    version = value_version(value)
    return hashlib.sha256(version.encode()).hexdigest()[:8] if version else id_of_class(type(value))
