"""The model of whole candidates: what it predicts, what it proposes, and that few evaluations suffice."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from bbo_strategies.mbo import ModelBasedOptimization
from bbo_strategies.mbo.whole import Process, Whole, targets
from bbo_strategies.random_search import RandomSearch
from bbo_suite import Constraint, Moves, Space, choice, product, scale
from bbo_suite.testing import play, start


def rng(seed=0):
    return np.random.default_rng(seed)


def kernel(seed=0):
    """Return a space like that of a GPU kernel, and a cost in which parameters interact."""
    space = product(
        *(scale(name, range(size)) for name, size in zip("abcd", (16, 5, 8, 8), strict=True)),
        *(choice(name, range(3)) for name in "ef"),
        constraints=[Constraint((0, 1), lambda rows: rows.sum(axis=1) < 17)],
    )
    best, noise = space.sample(1, rng(seed))[0].astype(int), rng(seed + 1).normal(size=(3, 8, 3))

    def cost(rows):
        rows = rows.astype(int)
        far = ((rows[:, :4] - best[:4]) / np.array([16, 5, 8, 8])) ** 2
        joint = (rows[:, 0] / 16 - rows[:, 3] / 8 - best[0] / 16 + best[3] / 8) ** 2
        return np.exp(2 * far.sum(axis=1) + 3 * joint + 0.1 * noise[rows[:, 4], rows[:, 2], rows[:, 5]])

    return space, cost


def test_targets_know_good_from_bad_and_failures_are_bad():
    found = targets(np.array([1.0, 10.0, 100.0, 1e9, np.inf]))
    assert found[0] < found[1] < found[2] < found[3] == found[4]
    assert found[4] - found[2] == pytest.approx(found[2] - found[0])
    mostly_best = targets(np.array([1.0, 1.0, 1.0, 2.0]))
    assert mostly_best[0] == mostly_best[2] < mostly_best[3]
    np.testing.assert_array_equal(targets(np.full(4, np.inf)), np.zeros(4))
    np.testing.assert_array_equal(targets(np.full(4, -3.0)), np.zeros(4))


def test_the_process_predicts_what_it_saw_and_is_less_sure_elsewhere():
    space, cost = kernel()
    seen, unseen = space.sample(60, rng(2)), space.sample(300, rng(3))
    process = Process(space)
    process.fit(seen, np.log(cost(seen)))
    means, variances, _ = process.predict(seen)
    others, more, _ = process.predict(unseen)
    assert np.abs(means - np.log(cost(seen))).max() < 0.1
    assert np.median(more) > 3 * np.median(variances)
    assert np.corrcoef(others, np.log(cost(unseen)))[0, 1] > 0.8
    np.testing.assert_allclose(process.means(unseen), others, rtol=1e-4)


def test_candidates_that_differ_in_what_matters_not_are_predicted_alike():
    space = Space([8, 8], [1, 1])
    rows = space.sample(60, rng())
    process = Process(space)
    process.fit(rows, rows[:, 0].astype(float))
    grid = np.stack(np.meshgrid(np.arange(8), np.arange(8)), axis=-1).reshape(-1, 2).astype(space.dtype)
    means = process.means(grid).reshape(8, 8)
    assert np.ptp(means, axis=0).max() < 0.1 * np.ptp(means, axis=1).min()


def test_it_proposes_different_new_allowed_candidates():
    space, cost = kernel()
    whole = Whole(space, Moves(space), rng())
    known: set[bytes] = set()

    def fresh(rows):
        return np.array([row for row in np.unique(rows, axis=0) if row.tobytes() not in known], space.dtype)

    rows = space.sample(10, rng(1))
    assert not whole.ready
    whole.learn(rows, cost(rows))
    assert whole.ready
    for _ in range(8):
        rows = whole.propose(6, fresh)
        assert len(np.unique(rows, axis=0)) == len(rows) == 6 and space.allowed(rows).all()
        assert not known & {row.tobytes() for row in rows}
        known |= {row.tobytes() for row in rows}
        whole.learn(rows, cost(rows))


def test_the_process_uses_one_thread(monkeypatch):
    threads, fit = [], Process.fit

    def watched(process, *given):
        threads.extend(pool["num_threads"] for pool in threadpool_info())
        fit(process, *given)

    monkeypatch.setattr(Process, "fit", watched)
    space, cost = kernel()
    with threadpool_limits(2):
        list(play(start(ModelBasedOptimization, space, 30), cost, 10))
        assert 2 in [pool["num_threads"] for pool in threadpool_info()]
    assert set(threads) == {1}


@pytest.mark.parametrize("seed", range(2))
def test_few_evaluations_find_what_random_search_finds_with_twenty_times_as_many(seed):
    space, cost = kernel(seed)
    best = {
        kind: min(values.min() for _, values in play(start(kind, space, budget, seed), cost, 20))
        for kind, budget in ((ModelBasedOptimization, 60), (RandomSearch, 1200))
    }
    assert best[ModelBasedOptimization] <= best[RandomSearch]
