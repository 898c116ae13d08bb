"""Simulates thousands of orders of passes on one program in one call."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True, error_model="numpy")
def simulate(
    orders: NDArray,
    starts: NDArray,
    sites: NDArray,
    kinds: NDArray,
    weights: NDArray,
    enablers: NDArray,
    after: NDArray,
    size: NDArray,
    opens: NDArray,
    counts: NDArray,
) -> None:
    """Apply each of `(b, l)` orders to the program and store the instructions that are left in `counts`, `(b,)`.

    Pass p visits the sites `sites[starts[p]:starts[p + 1]]` in this order, so it can rewrite a site that it has opened
    during the same visit. The tables are those of `Rewrites`.
    """
    state = np.empty(len(kinds), np.int8)
    for b in range(len(orders)):
        state[:] = 0
        for slot in range(orders.shape[1]):
            p = orders[b, slot]
            for place in range(starts[p], starts[p + 1]):
                i = sites[place]
                enabler = enablers[i]
                if enabler < 0 or opens[kinds[enabler], state[enabler]]:
                    state[i] = after[p, kinds[i], state[i]]
        counts[b] = 0
        for i in range(len(kinds)):
            counts[b] += weights[i] * size[kinds[i], state[i]]
