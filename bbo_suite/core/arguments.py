"""Arguments of the public functions, checked against their annotations: a mistake is one sentence that names it."""

from __future__ import annotations

import functools
import inspect
import math
import types
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin

import numpy as np

from ..errors import UserError

_WORDS: dict[Any, tuple[str, tuple[type, ...]]] = {
    str: ("a text", (str,)),
    Path: ("a path", (Path,)),
    bool: ("True or False", (bool, np.bool_)),
    int: ("a whole number", (int, np.integer)),
    float: ("a number", (int, float, np.integer, np.floating)),
    type(None): ("None", (type(None),)),
}
"""What an argument must be, in words, and the types that are it."""
_SEVERAL = (Sequence, Collection)
_P = ParamSpec("_P")
_R = TypeVar("_R")


def typed(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return a function that first checks its arguments whose annotations are plain: texts, paths, numbers, lists.

    Raises:
      UserError: an argument is something else.
    """

    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*arguments: _P.args, **keywords: _P.kwargs) -> _R:
        try:
            given = signature.bind(*arguments, **keywords).arguments
        except TypeError:
            return function(*arguments, **keywords)  # Python's own sentence names what is missing
        for name, value in given.items():
            hint = _hint(signature.parameters[name].annotation, function)
            if not _fits(value, hint):
                raise UserError(f"{name} must be {_words(hint)}, not {repr(value)[:60]}")
        return function(*arguments, **keywords)

    return call


def _hint(annotation: Any, function: Callable[..., Any]) -> Any:  # noqa: ANN401 - any annotation
    try:
        return eval(annotation, function.__globals__) if isinstance(annotation, str) else annotation
    except NameError:  # a type that only type checkers import
        return Any


def _fits(value: object, hint: Any) -> bool:  # noqa: ANN401 - any annotation
    if (kinds := get_args(hint)) and get_origin(hint) in (Union, types.UnionType):
        return any(_fits(value, kind) for kind in kinds)
    if get_origin(hint) in _SEVERAL:
        return isinstance(value, Collection) and all(_fits(each, kinds[0]) for each in value)
    if hint not in _WORDS:
        return True
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return isinstance(value, _WORDS[hint][1]) and (hint is bool or not isinstance(value, bool | np.bool_))


def _words(hint: Any) -> str:  # noqa: ANN401
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(_words(kind) for kind in get_args(hint))
    if get_origin(hint) in _SEVERAL:
        return f"a list, each {_words(get_args(hint)[0])}"
    return _WORDS[hint][0]
