"""Strategies of other libraries with which the adapters are tested; `test_every_name` has the others."""

from __future__ import annotations

import dataclasses

from bbo_suite import Strategy, option
from bbo_suite.registry import Registry

PEERS = [
    "optuna:TPESampler",
    "optuna:CmaEsSampler",
    "optuna:NSGAIISampler",
    "nevergrad:NGOpt",
    "nevergrad:DiscreteLenglerOnePlusOne",
    "nevergrad:TwoPointsDE",
    "pymoo:GA",
    "gomea:LinkageTree",
]
SMALL = {"population": 8, "startup": 4}


def peer(name: str) -> type[Strategy]:
    """Return a strategy whose generations fit a rule's budget; without its library, a UserError says so."""
    found = Registry().strategy(name)
    small = [(key, int, option(n, "n")) for key, n in SMALL.items() if hasattr(found.Options, key)]
    quick = dataclasses.make_dataclass("Quick", small, bases=(found.Options,), frozen=True)
    return type(found.__name__, (found,), {"Options": quick})
