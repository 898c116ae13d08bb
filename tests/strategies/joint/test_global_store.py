import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bbo_strategies.joint.global_store import GlobalStore
from bbo_suite import Decisions


def decisions(keys):
    k = len(keys)
    return Decisions(np.arange(k), np.full(k, 9), np.array(keys, np.uint64), np.arange(k), np.ones(k))


graphs = st.lists(st.lists(st.sampled_from([0, 1, 2, 7, 2**63, 2**64 - 1]), unique=True), min_size=1, max_size=4)


@given(graphs, st.lists(st.tuples(st.integers(0, 3), st.sampled_from([1.0, 2.0, 3.0, np.inf])), max_size=12), st.data())
def test_the_store_holds_the_value_of_the_cheapest_candidate_with_the_key(graphs, told, data):
    store, known, best = GlobalStore(9), [decisions(keys) for keys in graphs], {}
    for place, cost in told:
        own = known[place % len(known)]
        values = data.draw(st.lists(st.integers(0, 8), min_size=len(own.keys), max_size=len(own.keys)))
        store.learn(own, np.array(values, int), cost)
        for key, value in zip(own.keys.tolist(), values, strict=True):
            if cost < best.get(key, (np.inf,))[0]:
                best[key] = (cost, value)
    for own in known:
        values, there = store.recall(own.columns, own.keys)
        assert there.tolist() == [key in best for key in own.keys.tolist()]
        assert values[there].tolist() == [best[key][1] for key in own.keys.tolist() if key in best]
