import numpy as np
import pytest
from bbo_strategies.changes import Changes

from bbo_suite import Moves, Space


def changes(sizes=(2,) * 400, seed=0):
    return Changes(Moves(Space(sizes)), np.random.default_rng(seed))


def test_a_run_gives_one_value_to_parameters_that_follow_and_a_single_change_one():
    n = 600
    configs = np.random.default_rng(1).integers(0, 2, (n, 400)).astype(np.int8)
    before, columns = configs.copy(), np.random.default_rng(2).integers(0, 300, n)
    runs = changes().change(configs, np.arange(n), columns)
    assert 0.4 < runs.mean() < 0.6  # as nothing is known
    for row, old, column, run in zip(configs, before, columns, runs, strict=True):
        changed = np.flatnonzero(row != old)
        assert changed[0] == column and changed[-1] < column + 50
        assert (row[changed] == row[column]).all() and (run or len(changed) == 1)
    assert max(len(np.flatnonzero(a != b)) for a, b in zip(configs, before, strict=True)) > 10  # a heavy tail


@pytest.mark.parametrize(("paying", "share"), [(1, 0.8), (0, 0.05)])
def test_the_share_of_runs_follows_their_success(paying, share):
    mixed, runs = changes(), np.arange(100) % 2 == 0
    assert mixed.share == 0.5
    for _ in range(30):
        mixed.learn(runs, runs == paying)
    assert mixed.share == pytest.approx(share)
    for _ in range(60):  # what has paid of old is forgotten
        mixed.learn(runs, runs != paying)
    assert mixed.share == pytest.approx(0.85 - share)


def test_the_share_stays_even_when_nothing_pays_or_both_do():
    for paying in (False, True):
        mixed = changes()
        for _ in range(30):
            mixed.learn(np.arange(100) < 50, np.full(100, paying))
        assert mixed.share == pytest.approx(0.5)
