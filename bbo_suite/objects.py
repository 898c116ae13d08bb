"""Strategies and problems that were given as classes and objects, in a form that travels to other processes."""

from __future__ import annotations

import hashlib
import pickle
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

from .core.code_version import is_ours
from .core.problem import Problem
from .core.strategy import Strategy
from .core.value_version import arguments_version, value_version
from .errors import UserError, one_line


@dataclass(frozen=True)
class GivenProblem:
    """How to build a problem that was given as an object.

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
    def of(cls, made: type[Problem], arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> GivenProblem:
        """Return how to build the problem, with its id."""
        words = [_word(value) for value in arguments] + [f"{key}={_word(value)}" for key, value in keywords.items()]
        problem_id = f"{id_of_class(made)}/{'-'.join(words) or 'instance'}"
        key = arguments_version(arguments, keywords) or f"at {id(arguments)}"
        return cls(problem_id, made, key, arguments, keywords)

    def build(self) -> Problem:
        """Return the problem."""
        return self.made(*self.arguments, **self.keywords)


@dataclass(frozen=True)
class Objects:
    """The strategies and problems of a study that were given as classes and objects.

    Attributes:
      strategies: classes by their ids.
      problems: how to build each of them.
    """

    strategies: tuple[tuple[str, type[Strategy]], ...] = ()
    problems: tuple[GivenProblem, ...] = ()

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
    folders = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    return any(Path(file).is_relative_to(folder) for folder in folders)


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
