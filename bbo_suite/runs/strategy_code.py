"""The version of a strategy's code outside this distribution: stored with a run and compared on resume."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from ..core.code_version import code_version, is_ours
from ..core.strategy import Strategy
from ..errors import UserError
from ..registry import Registry
from ..store.identity import CODE, UNVERSIONED


def code_facts(registry: Registry, name: str, options: Any) -> dict[str, str]:  # noqa: ANN401 - the strategy's own
    """Return what `run.json` stores about the code of a strategy and its members; nothing for a built-in one.

    It is not part of the identity, because the identity determines the random draws.
    """
    foreign = {owner: found for owner, found in _all(registry, name, options) if not is_ours(found)}
    versions = {owner: code_version(found) for owner, found in foreign.items()}
    without = [f"strategy {owner} has no source file" for owner, version in versions.items() if not version]
    code = {CODE: " ".join(f"{owner}={version}" for owner, version in sorted(versions.items()))} if versions else {}
    return code | ({UNVERSIONED: without[0]} if without else {})


def _all(registry: Registry, name: str, options: Any) -> Iterator[tuple[str, type[Strategy]]]:  # noqa: ANN401
    """Yield a strategy and the strategies that it runs, which have their default options, by their ids."""
    strategy = registry.strategy(name)
    yield name, strategy
    for member in strategy.members(options):
        with suppress(UserError):  # the strategy itself reports which member it cannot run
            yield from () if member == name else _all(registry, member, registry.strategy(member).Options())
