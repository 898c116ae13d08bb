"""What several tests share: strategies of other libraries (`test_every_name` has the others), and runs as arrays."""

from __future__ import annotations

import dataclasses

import numpy as np

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
    "opentuner:AUCBanditMetaTechniqueA",
]
SMALL = {"population": 8, "startup": 4}


def peer(name: str) -> type[Strategy]:
    """Return a strategy whose generations fit a rule's budget; without its library, a UserError says so."""
    found = Registry().strategy(name)
    small = [(key, int, option(n, "n")) for key, n in SMALL.items() if hasattr(found.Options, key)]
    quick = dataclasses.make_dataclass("Quick", small, bases=(found.Options,), frozen=True)
    return type(found.__name__, (found,), {"Options": quick})


def joined(batches):
    """Return all candidates and all costs of a run (see `bbo_suite.testing.play`)."""
    rows, values = zip(*batches, strict=True)
    return np.concatenate(rows), np.concatenate(values)
