"""The version of a constructor's argument: a text that is the same for equal arguments in any process."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from .code_version import code_version, digest, is_library
from .space import Space


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
