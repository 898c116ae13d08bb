"""What exactly something was made with: versions of code, of a constructor's arguments, and of files.

A run resumes only if these have not changed. Code of this distribution has no version: its own tests keep runs alike.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import inspect
import linecache
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from ..errors import UserError
from ..files.reading import read_bounded
from .space import Space

_OURS = ("bbo_suite", "bbo_strategies", "bbo_problems")
LARGEST = 1 << 26
"""Most bytes of a file that is an option; those of today have fewer than a million."""
_MARK = re.compile(r"(?P<path>.+)#(?P<digest>[0-9a-f]{16})", re.DOTALL)


def is_ours(made: type) -> bool:
    """Return True for a class of this distribution, or a variant that such a class created."""
    home = next(each.__module__ for each in made.__mro__ if each.__module__ != "abc")  # dynamic classes belong to abc
    return home.partition(".")[0] in _OURS


def code_version(made: type | FunctionType) -> str:
    """Return a hash of the source of a class or a function; empty if there is no source.

    It covers the whole module and those beside it that it imports. In a notebook, it covers the cells that define the
    class, its bases, and the functions and classes that these use.
    """
    bases = made.__mro__ if isinstance(made, type) else (made,)
    texts = [_sources(base) for base in bases if not is_library(base)]
    if not texts or not texts[0]:
        return ""
    return digest(sorted(set().union(*texts)))


def is_library(made: type | FunctionType) -> bool:
    """Return True for code of this distribution or of Python's own library."""
    return _is_library(made.__module__.partition(".")[0])


def _is_library(module: str) -> bool:
    return module in sys.stdlib_module_names - {"__main__"} or module in _OURS


def _sources(made: type | FunctionType) -> set[str]:
    """Return the texts of the files and cells that define a class or a function."""
    files: set[Path] = set()
    texts: set[str] = set()
    waiting, seen = list(_functions(made)), set()
    while waiting:
        function = waiting.pop()
        if function in seen:
            continue
        seen.add(function)
        if (file := Path(function.__code__.co_filename)).is_file():
            files.add(file)
        else:
            texts.add(_text(file))
            waiting += _used(function)
    texts |= set(map(_text, _with_neighbours(files)))
    texts.discard("")  # generated methods have no source
    return texts or _text_of_module(made)


def _text(file: Path) -> str:
    linecache.checkcache(str(file))
    return "".join(linecache.getlines(str(file)))


def _with_neighbours(files: set[Path]) -> set[Path]:
    """Return files and those that they import from beside them, and these in turn."""
    found: set[Path] = set()
    waiting = list(files)
    while waiting:
        if (file := waiting.pop()) not in found:
            found.add(file)
            for name, up in imports(_text(file)):
                waiting += _neighbours(file.parents[up], name)
    return found


def _neighbours(folder: Path, name: str) -> list[Path]:
    """Return the files of a module in a folder; none if there is none, or if one of this name was loaded elsewhere."""
    loaded = getattr(sys.modules.get(name), "__file__", None)
    if _is_library(name) or (loaded and folder.resolve() not in Path(loaded).resolve().parents):
        return []
    return [folder / f"{name}.py"] if (folder / f"{name}.py").is_file() else sorted((folder / name).rglob("*.py"))


def imports(source: str | bytes) -> Iterator[tuple[str, int]]:
    """Yield the first word of each module that a file imports, and how many folders above the file it is, if near."""
    try:
        statements = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):  # in a file that is not imported yet
        return
    for statement in statements:
        if isinstance(statement, ast.Import):
            yield from ((alias.name.partition(".")[0], 0) for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            up = max(0, statement.level - 1)
            words = [statement.module] if statement.module else [alias.name for alias in statement.names]
            yield from ((word.partition(".")[0], up) for word in words)


def _functions(made: type | FunctionType) -> Iterator[FunctionType]:
    """Yield a function, or the methods of a class."""
    for value in vars(made).values() if isinstance(made, type) else [made]:
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        function = inspect.unwrap(function) if callable(function) else function
        if isinstance(function, FunctionType):
            yield function


def _used(function: FunctionType) -> Iterator[FunctionType]:
    """Yield the functions, and the methods of classes, that a function refers to in its own module."""
    for name in _names(function.__code__):
        found = function.__globals__.get(name)
        if isinstance(found, type | FunctionType) and found.__module__ == function.__module__:
            yield from _functions(found)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def _text_of_module(made: type | FunctionType) -> set[str]:
    """Return the source of the module of a class without methods, if its source can be read."""
    try:
        inspect.getsource(made)
        return {inspect.getsource(sys.modules[made.__module__])}
    except (OSError, TypeError, KeyError):
        return set()


def digest(texts: Sequence[str]) -> str:
    """Return a hash of texts."""
    return hashlib.sha256("\0".join(texts).encode(errors="surrogatepass")).hexdigest()[:16]


def value_version(value: object) -> str:
    """Return a text that is the same for equal arguments in any process; empty if there is none."""
    match value:
        case None | bool() | int() | float() | complex() | str() | bytes():
            return repr(value)
        case Enum():
            return f"{type(value).__qualname__}.{value.name}"
        case Path():
            return f"Path({str(value)!r})"
        case np.ndarray() | np.generic():
            array = np.asarray(value)
            return "" if array.dtype.hasobject else digest([str(array.dtype), str(array.shape), array.tobytes().hex()])
        case Space():
            return f"Space({value.digest()})"
        case list() | tuple():
            return _joined(type(value).__name__, [value_version(item) for item in value])
        case set() | frozenset():
            return _joined("set", sorted(value_version(item) for item in value))
        case Mapping():
            return _joined("dict", [value_version(item) for pair in value.items() for item in pair])
        case type() | FunctionType():
            return _version_of_named(value)
    if hasattr(value, "constructed_with"):  # a problem
        return _joined(_version_of_named(type(value)), [arguments_version(*value.constructed_with)])
    if dataclasses.is_dataclass(value):
        fields = [value_version(getattr(value, field.name)) for field in dataclasses.fields(value)]
        return _joined(type(value).__qualname__, fields)
    return ""


def _version_of_named(value: Any) -> str:  # noqa: ANN401 - a class or a function
    """Return the version of a class or a function, with what a nested function holds."""
    held = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
    name = f"{value.__module__}.{value.__qualname__}"
    inner = [value_version(each) for each in held if each is not value]
    return _joined(name, ["library" if is_library(value) else code_version(value), *inner])


def arguments_version(arguments: Sequence[object], keywords: Mapping[str, object]) -> str:
    """Return a text that is the same for equal arguments; empty if an argument has no version."""
    return value_version((tuple(arguments), dict(keywords)))


def _joined(name: str, parts: Sequence[str]) -> str:
    return f"{name}({', '.join(parts)})" if all(parts) else ""


class PinnedFile(str):
    """The option that names a file: its `path#digest`, made from its path; empty for none.

    This text is stored as the option. So a run resumes only with the file that it began with: another content at the
    same path gives another option.
    """

    __slots__ = ()

    def __new__(cls, text: str = "") -> PinnedFile:
        """Return the text with the digest of the file's content.

        Raises:
          UserError: the file cannot be read.
        """
        complete = not text or _MARK.fullmatch(text)
        return super().__new__(cls, text if complete else f"{text}#{_digest_of_bytes(_read(text))}")


def content(text: str) -> tuple[str, bytes]:
    """Return the path and the content of the file that a `PinnedFile` or a plain path names.

    Raises:
      UserError: the file cannot be read, or its content has changed.
    """
    mark = _MARK.fullmatch(text)
    path = mark["path"] if mark else text
    data = _read(path)
    if mark and _digest_of_bytes(data) != mark["digest"]:
        raise UserError(f"{path} has changed since the run began; restore it or choose another --study")
    return path, data


def _read(path: str) -> bytes:
    try:
        return read_bounded(Path(path), LARGEST)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _digest_of_bytes(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
