"""Strategies at play on made-up costs, in plain sight."""

import numpy as np

from bbo_suite import Task


def started(kind, space, budget, seed=0, **options):
    """Return a strategy at the beginning, with a default of zeros."""
    task = Task("made-up/x", space, np.zeros(len(space), space.dtype), "seconds", None)
    return kind(task, budget, np.random.default_rng(seed), kind.Options(**options))


def play(strategy, cost, batch=100):
    """Play to the end of the budget; yield each batch and its costs, after the strategy was told."""
    left = strategy.budget
    while left:
        configs = strategy.ask(min(batch, left))
        values, left = cost(configs), left - len(configs)
        strategy.tell(configs, values)
        yield configs, values
