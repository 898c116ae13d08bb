"""Assign the options that a user gives to the strategies of a study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..core import options
from ..errors import UserError, did_you_mean
from ..registry import Registry


def chosen_options(
    registry: Registry,
    strategies: Sequence[str],
    texts: Mapping[str, str],
    values: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return the options of each strategy by id.

    Args:
      texts: values as text by `option` or `strategy.option`.
      values: values by strategy and option.

    Raises:
      UserError: an option that no chosen strategy has, or a wrong value.
    """
    classes = {name: registry.strategy(name) for name in strategies}
    chosen = {}
    for name, strategy in classes.items():
        known = {option["name"] for option in options.describe(strategy.Options)}
        own = {key.rpartition(".")[2]: text for key, text in texts.items() if key.rpartition(".")[0] == name}
        shared = {key: text for key, text in texts.items() if "." not in key and (key in known or len(classes) == 1)}
        given = {**shared, **own, **(values or {}).get(name, {})}
        chosen[name] = options.make(strategy.Options, given, f"strategy {name}")
    _check_owners([*texts, *(f"{owner}." for owner in values or {})], chosen)
    return chosen


def _check_owners(texts: Iterable[str], chosen: Mapping[str, Any]) -> None:
    known = {option for made in chosen.values() for option in asdict(made)}
    for key in texts:
        owner, _, option = key.rpartition(".")
        if owner and owner not in chosen:
            what = f"option {key!r} is" if option else "options are"
            raise UserError(f"{what} for strategy {owner!r}, which is not among those that run: {', '.join(chosen)}")
        if not owner and option not in known:
            hint = did_you_mean(key, known)
            raise UserError(f"none of the strategies {', '.join(chosen)} has an option {key!r}.{hint}")
