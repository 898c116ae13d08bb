"""Parameters that may not differ are found, and moved together."""

import numpy as np

from bbo_strategies.local import LocalOptions, LocalSearch
from bbo_strategies.local.interactions import Ties
from bbo_suite import Space, Structure, Task

CHAIN, LOOSE, VALUES = 10, 4, 5
"""Parameters of a chain; 4 and 5 may differ; values of each."""


def task():
    first = np.arange(CHAIN - 1)
    pairs = np.concatenate([np.stack([first, first + 1], 1), np.stack([first + 1, first], 1)])
    pairs = pairs[np.lexsort(pairs.T[::-1])]
    features = np.arange(CHAIN, dtype=np.float32)[:, None]
    starts = np.searchsorted(pairs[:, 0], np.arange(CHAIN + 1))
    structure = Structure(starts, pairs[:, 1].astype(np.int32), features, ("place",), is_paired=True)
    space = Space(np.full(CHAIN, VALUES))
    return Task("chain", space, np.zeros(CHAIN, space.dtype), "cost", structure)


def costs(configs):
    differs = np.diff(configs.astype(int), axis=1) != 0
    fails = np.delete(differs, LOOSE, axis=1).any(axis=1)
    wanted = np.where(np.arange(CHAIN) <= LOOSE, 3, 1)
    return np.where(fails, np.inf, 10.0 + (configs != wanted).sum(axis=1))


def test_a_pair_that_may_differ_is_no_tie():
    ties = Ties(task(), most=CHAIN, rng=np.random.default_rng(0))
    labels = ties.groups(costs(ties.trials))
    assert labels.tolist() == [labels[0]] * (LOOSE + 1) + [labels[-1]] * (CHAIN - LOOSE - 1)
    assert labels[0] != labels[-1]


def test_what_was_not_tried_counts_as_tied():
    ties = Ties(task(), most=0, rng=np.random.default_rng(0))
    assert len(ties.trials) == 0
    assert len(set(ties.groups(np.empty(0)).tolist())) == 1


def test_local_search_moves_tied_parameters_together():
    """No change of fewer than five parameters works: single changes never left the default.

    The groups have 25 candidates, so that single parameters are searched afterwards.
    """
    given = task()
    search = LocalSearch(given, 200, np.random.default_rng(0), LocalOptions())
    best, spent = np.inf, 0
    while spent < 200:
        rows = search.ask(7)
        assert len(rows)
        values = costs(rows)
        best, spent = min(best, values.min()), spent + len(rows)
        search.tell(rows, values)
        search.observe(given.default[None], np.array([20.0]))
    assert best == 10.0
