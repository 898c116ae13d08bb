"""Is a batch of `mbo` better when its changes fall into different leaves of its forest?

    python results/models/mbo/diversity.py     # adds ten seeds of both designs to designs.csv: 3 minutes

The eight training tasks of the other designs, 1,000 evaluations in batches of 20. A change is taken by its acquisition,
in standard deviations, less the largest share of trees in which it shares a leaf with one that is taken already.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from study import run

from bbo_strategies.mbo.neighbours import ModelNeighbours

FILE = Path(__file__).parent / "designs.csv"
TASKS = (
    *("ehrlich/32x32-a#21", "flags/resnet_v2-50-infer-b64", "fusion/resnet_v2-50-infer-b64", "ordering/train-40-a"),
    *("layout/resnet_v2-50-infer-b64", "scratchpad/bert@2MiB", "sharding/rnn@2x4", "tile/ssd-resnet34-infer-b32"),
)
NAMES = {"mbo": "base, ten seeds", "diverse": "a: diversity by leaves, ten seeds"}
POOL = 4
"""A change is chosen among this many times as many as are wanted."""
_plain = ModelNeighbours._chosen


def _diverse(self: ModelNeighbours, state: NDArray, n: int) -> NDArray:
    """Return up to `n` changes: the most different of more; those that are left may be proposed again."""
    claim = self._random.claim_rows
    self._random.claim_rows = lambda visited, _: np.arange(min(len(visited), POOL * n))
    pool = _plain(self, state, n)
    self._random.claim_rows = claim
    forest = self._ensemble.members.get("forest")
    if len(pool) > n and forest is not None:
        features = np.ascontiguousarray(self._features.of(state, pool), np.float32)
        leaves = np.stack([tree.apply(features) for tree in forest.trees], axis=1)
        value = -self._ensemble.predict(features).mean(axis=0)
        pool = pool[_spread(value / (value.std() or 1.0), leaves)]
    return pool[claim(pool, n)]


def _spread(value: NDArray, leaves: NDArray) -> list[int]:
    """Return the order in which `(m,)` values are taken, given `(m, trees)` leaves."""
    taken, shared = list[int](), np.zeros(len(value))
    while len(taken) < len(value):
        taken.append(int(np.argmax(np.where(np.isin(np.arange(len(value)), taken), -np.inf, value - shared))))
        shared = np.maximum(shared, (leaves == leaves[taken[-1]]).mean(axis=1))
    return taken


def main() -> None:
    """Make the runs of both designs, and write their means."""
    rows = []
    for design, name in NAMES.items():
        ModelNeighbours._chosen = _diverse if design == "diverse" else _plain
        for task in TASKS:
            runs = pd.DataFrame([run(task, "mbo", 1_000, seed) for seed in range(10)])
            means = runs[["g200", "g1000", "own", "hits"]].mean()
            row = {"strategy": "mbo", "design": name, "budget": 1_000, "problem": task, "seeds": 10, **means}
            rows.append(row)
            print(row, [round(gain, 2) for gain in runs["g1000"]], flush=True)
    table = pd.read_csv(FILE)
    new = pd.DataFrame(rows).reindex(columns=table.columns)
    kept = table[~table["design"].isin(NAMES.values())]
    pd.concat([kept, new]).to_csv(FILE, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
