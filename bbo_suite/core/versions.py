"""The version of code and of values that are not part of this distribution: what tells whether a run can go on."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import linecache
import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from .space import Space

_OURS = ("bbo_suite", "bbo_strategies", "bbo_problems")


def is_ours(made: type) -> bool:
    """Return True for a class of this distribution, or a variant that one made of itself."""
    home = next(each.__module__ for each in made.__mro__ if each.__module__ != "abc")  # as dynamic classes are in
    return home.partition(".")[0] in _OURS


def code_version(made: type | FunctionType) -> str:
    """Return a hash of the source of a class or a function; empty if there is no source.

    It covers the whole module. Of a notebook it covers the cells that define the class, its bases, and the functions
    and classes that these use.
    """
    bases = made.__mro__ if isinstance(made, type) else (made,)
    texts = [_sources(base) for base in bases if not _is_library(base)]
    if not texts or not texts[0]:
        return ""
    return _digest(sorted(set().union(*texts)))


def _is_library(made: type | FunctionType) -> bool:
    module = made.__module__.partition(".")[0]
    return module in sys.stdlib_module_names - {"__main__"} or module in _OURS


def _sources(made: type | FunctionType) -> set[str]:
    """Return the texts of the files and cells that define a class or a function."""
    texts: set[str] = set()
    waiting, seen = list(_functions(made)), set()
    while waiting:
        function = waiting.pop()
        if function in seen:
            continue
        seen.add(function)
        file = function.__code__.co_filename
        linecache.checkcache(file)
        texts.add("".join(linecache.getlines(file)))
        if not Path(file).is_file():
            waiting += _used(function)
    texts.discard("")  # of methods that a decorator made
    return texts or _text_of_module(made)


def _functions(made: type | FunctionType) -> Iterator[FunctionType]:
    """Yield a function, or the methods of a class."""
    for value in vars(made).values() if isinstance(made, type) else [made]:
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        function = inspect.unwrap(function) if callable(function) else function
        if isinstance(function, FunctionType):
            yield function


def _used(function: FunctionType) -> Iterator[FunctionType]:
    """Yield the functions, and the methods of classes, of its own module that a function names."""
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
    """Return the source of the module of a class without methods, if it is really there."""
    try:
        inspect.getsource(made)
        return {inspect.getsource(sys.modules[made.__module__])}
    except (OSError, TypeError, KeyError):
        return set()


def value_version(value: object) -> str:
    """Return a text that equal arguments of a constructor share, in any process; empty where none is known."""
    match value:
        case None | bool() | int() | float() | complex() | str() | bytes():
            return repr(value)
        case Enum():
            return f"{type(value).__qualname__}.{value.name}"
        case Path():
            return f"Path({str(value)!r})"
        case np.ndarray() | np.generic():
            array = np.asarray(value)
            return "" if array.dtype.hasobject else _digest([str(array.dtype), str(array.shape), array.tobytes().hex()])
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
    return _joined(name, ["library" if _is_library(value) else code_version(value), *inner])


def arguments_version(arguments: Sequence[object], keywords: Mapping[str, object]) -> str:
    """Return a text that equal arguments of a constructor share; empty where one has no version."""
    return value_version((tuple(arguments), dict(keywords)))


def _joined(name: str, parts: Sequence[str]) -> str:
    return f"{name}({', '.join(parts)})" if all(parts) else ""


def _digest(texts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode(errors="surrogatepass")).hexdigest()[:16]
