"""Which parts depend on each parameter, and which a change of parameters touches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled_for

compiled = compiled_for(__file__)


def users_of(
    parameters: NDArray[np.int64], parts: NDArray[np.int64], d: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the parts that depend on each of d parameters, as compressed rows: `(d + 1,)` starts, and parts.

    Args:
      parameters, parts: `(m,)` each; part `parts[i]` depends on parameter `parameters[i]`.
    """
    order = np.argsort(parameters, kind="stable")
    return np.searchsorted(parameters[order], np.arange(d + 1)).astype(np.int64), parts[order].astype(np.int64)


@compiled(runtime=False)
def set_and_touch(
    columns: NDArray, values: NDArray, config: NDArray, users: NDArray, parts: NDArray, touched: NDArray
) -> int:
    """Set parameters of a candidate and return what `CHANGE` does: the number of parts that are touched."""
    count = 0
    for i in range(len(columns)):
        config[columns[i]] = values[i]
        for j in range(users[columns[i]], users[columns[i] + 1]):
            if count < len(touched):
                touched[count] = parts[j]
            count += 1
    return count if count <= len(touched) else -1
