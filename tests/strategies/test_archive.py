import numpy as np

from bbo_strategies.archive import Archive
from bbo_suite import Space


def test_the_archive_claims_each_candidate_once_and_then_nothing():
    space = Space([3, 4, 2])
    archive, rows = Archive(space, np.random.default_rng(0)), space.sample(50, np.random.default_rng(0))
    claimed = rows[archive.claim(rows, 5)]
    rest = [archive.others(10) for _ in range(8)]
    assert (
        len(claimed) == 5
        and sum(map(len, rest)) == 19
        and len(np.unique(np.concatenate([claimed, *rest]), axis=0)) == 24
    )
    assert rest[-1].shape == (0, 3) and rest[-1].dtype == space.dtype
