"""Options of a strategy: one frozen dataclass is the help, the record and the documentation."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, get_type_hints

from .errors import UserError, did_you_mean

_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def option(default: Any, help: str, low: float = -math.inf, high: float = math.inf) -> Any:  # noqa: ANN401
    """Return a dataclass field with its help and the closed range that its number must be in."""
    return dataclasses.field(default=default, metadata={"help": help, "low": low, "high": high})


def parse(options: type, texts: Mapping[str, str], owner: str) -> Any:  # noqa: ANN401 - an instance of `options`
    """Return the dataclass with the fields that `texts` names set.

    Raises:
      UserError: no such option, a text of a wrong type, or a number out of its range.
    """
    fields = {f.name: f for f in dataclasses.fields(options)}
    types = get_type_hints(options)
    values = {}
    for name, text in texts.items():
        if name not in fields:
            hint = did_you_mean(name, fields) if fields else " It has no options."
            raise UserError(f"{owner} has no option {name!r}.{hint}")
        values[name] = _value(text, types[name], f"option {name} of {owner}")
        _check_range(values[name], fields[name].metadata, f"option {name} of {owner}")
    return options(**values)


def _value(text: str, kind: type, what: str) -> Any:  # noqa: ANN401 - whatever `kind` is
    try:
        return _WORDS[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError):
        raise UserError(f"{what} must be of type {kind.__name__}, not {text!r}") from None


def _check_range(value: Any, metadata: Mapping[str, Any], what: str) -> None:  # noqa: ANN401
    low, high = metadata.get("low", -math.inf), metadata.get("high", math.inf)
    if isinstance(value, int | float) and not low <= value <= high:
        raise UserError(f"{what} must be between {low} and {high}, not {value}")


def describe(options: type) -> list[dict[str, Any]]:
    """Return name, type, default and meaning of every option, in order."""
    types = get_type_hints(options)
    return [
        {"name": f.name, "type": types[f.name].__name__, "default": f.default, "help": f.metadata.get("help", "")}
        for f in dataclasses.fields(options)
    ]
