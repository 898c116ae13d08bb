"""Options of a strategy: a frozen dataclass that defines the help, the stored settings and the documentation."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints

from ..errors import UserError, did_you_mean
from .quantities import count

_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def option(
    default: Any,  # noqa: ANN401
    help: str,
    low: float = -math.inf,
    high: float = math.inf,
    added: bool = False,
) -> Any:  # noqa: ANN401
    """Return a dataclass field with a help text and, for a number, its closed range.

    Args:
      added: True for an option that a strategy did not have at first. Its default is not part of a run's identity, so
        runs without it stay the same.
    """
    return dataclasses.field(default=default, metadata={"help": help, "low": low, "high": high, "added": added})


def identifying(options: Any) -> dict[str, Any]:  # noqa: ANN401 - an instance of some options
    """Return the fields of options that identify a run, by name."""
    fields = _fields(type(options))
    unset = {
        field.name for field in fields if field.metadata.get("added") and getattr(options, field.name) == field.default
    }
    return {name: value for name, value in dataclasses.asdict(options).items() if name not in unset}


def parse(options: type, texts: Mapping[str, str], owner: str) -> Any:  # noqa: ANN401 - an instance of `options`
    """Return an instance of the dataclass, with fields set from texts.

    Raises:
      UserError: an option is unknown, a text has the wrong type, or a number is out of range.
    """
    fields = {f.name: f for f in _fields(options)}
    types = get_type_hints(options)
    values = {}
    for name, text in texts.items():
        if name not in fields:
            hint = did_you_mean(name, fields) if fields else " It has no options."
            raise UserError(f"{owner} has no option {name!r}.{hint}")
        values[name] = _value(text, types[name], f"option {name} of {owner}")
        _check_range(values[name], fields[name].metadata, f"option {name} of {owner}")
    return options(**values)


def make(options: type, values: Mapping[str, Any], owner: str) -> Any:  # noqa: ANN401 - an instance of `options`
    """Return an instance of the dataclass with fields set from `values`; text is parsed as on the command line.

    Raises:
      UserError: an option is unknown, a value has the wrong type, or a number is out of range.
    """
    types = get_type_hints(options)
    whole = {name: value for name, value in values.items() if isinstance(value, tuple | list) and name in types}
    texts = {name: str(value) for name, value in values.items() if name not in whole}
    return dataclasses.replace(parse(options, texts, owner), **whole)


def _value(text: str, kind: type, what: str) -> Any:  # noqa: ANN401 - whatever `kind` is
    try:
        if get_origin(kind) is Literal:
            return {str(value): value for value in get_args(kind)}[text]
        return _WORDS[text.lower()] if kind is bool else count(text) if kind is int else kind(text)
    except (KeyError, ValueError, TypeError):
        wanted = f"{'of type ' if isinstance(kind, type) else ''}{_type_words(kind)}"
        raise UserError(f"{what} must be {wanted}, not {text!r}") from None


def _type_words(kind: Any) -> str:  # noqa: ANN401 - a class or a form of `typing`
    if get_origin(kind) is Literal:
        return " or ".join(map(str, get_args(kind)))
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _fields(options: type) -> tuple[dataclasses.Field[Any], ...]:
    if not dataclasses.is_dataclass(options):
        raise UserError(f"the options {options!r} are not a dataclass; decorate them with @dataclass(frozen=True)")
    return dataclasses.fields(options)


def _check_range(value: Any, metadata: Mapping[str, Any], what: str) -> None:  # noqa: ANN401
    low, high = metadata.get("low", -math.inf), metadata.get("high", math.inf)
    if isinstance(value, int | float) and not (low <= value <= high and abs(value) < math.inf):
        least = f"{low} or more" if low > -math.inf else ""
        most = f"{high} or less" if high < math.inf else ""
        wanted = f"between {low} and {high}" if least and most else least or most or "a finite number"
        raise UserError(f"{what} must be {wanted}, not {value}")


def describe(options: type) -> list[dict[str, Any]]:
    """Return name, type, default and help text of every option, in order."""
    types = get_type_hints(options)
    return [
        {"name": f.name, "type": _type_words(types[f.name]), "default": f.default, "help": f.metadata.get("help", "")}
        for f in _fields(options)
    ]
