"""A task without passes, presented as a compiler with a single pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Decisions, MultiPass, Task


class OnePass(MultiPass):
    """One pass, `all`, that decides the whole space on a single graph."""

    passes = ("all",)

    def __init__(self, task: Task) -> None:
        self.source = None
        self._default = task.default.astype(np.int64)
        d = len(task.space)
        places = np.arange(d)
        self._decisions = Decisions(places, task.space.sizes, places.astype(np.uint64), places, np.full(d, 1 / d))

    def columns(self, name: str) -> NDArray[np.int64]:
        """Return every column."""
        return self._decisions.columns

    def decisions(self, name: str, graph: Any) -> Decisions:  # noqa: ANN401 - opaque
        """Return every parameter of the space."""
        return self._decisions

    def default(self, name: str, graph: Any) -> NDArray[np.int64]:  # noqa: ANN401 - opaque
        """Return the task's default."""
        return self._default

    def apply(self, name: str, graph: Any, config: NDArray) -> Any:  # noqa: ANN401 - opaque
        """Return the same graph."""
        return graph
