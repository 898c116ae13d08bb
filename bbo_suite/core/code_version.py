"""The version of code that is not part of this distribution: a run resumes only if it has not changed."""

from __future__ import annotations

import hashlib
import inspect
import linecache
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType

_OURS = ("bbo_suite", "bbo_strategies", "bbo_problems")


def is_ours(made: type) -> bool:
    """Return True for a class of this distribution, or a variant that such a class created."""
    home = next(each.__module__ for each in made.__mro__ if each.__module__ != "abc")  # dynamic classes belong to abc
    return home.partition(".")[0] in _OURS


def code_version(made: type | FunctionType) -> str:
    """Return a hash of the source of a class or a function; empty if there is no source.

    It covers the whole module. In a notebook, it covers the cells that define the class, its bases, and the functions
    and classes that these use.
    """
    bases = made.__mro__ if isinstance(made, type) else (made,)
    texts = [_sources(base) for base in bases if not is_library(base)]
    if not texts or not texts[0]:
        return ""
    return digest(sorted(set().union(*texts)))


def is_library(made: type | FunctionType) -> bool:
    """Return True for code of this distribution or of Python's own library."""
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
    texts.discard("")  # generated methods have no source
    return texts or _text_of_module(made)


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
