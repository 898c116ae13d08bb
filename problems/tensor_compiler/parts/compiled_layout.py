"""What the compiler makes of a candidate's layouts, in memory that is used again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..fusion.state import FusionState, new_state
from ..layout.in_place import Target, new_target
from ..layout.layout_pass import LayoutPass
from .places import Numbering, Places, new_numbering

compiled = compiled_for(__file__)


class Compiled(NamedTuple):
    """A candidate and what the compiler makes of it.

    Attributes:
      layouts: `(p,)` the choices of layouts.
      target: the laid-out program.
      state: its kernels.
      numbering: of its nodes.
    """

    layouts: NDArray[np.int64]
    target: Target
    state: FusionState
    numbering: Numbering


def new_compiled(layout: LayoutPass, places: Places, d: int) -> Compiled:
    """Return room for what the compiler makes of a candidate with `d` decisions of fusion; the system lends it late."""
    target = new_target(layout.graph, layout.source)
    most = len(target.plan.whole)
    return Compiled(np.full(len(layout.nodes), -1), target, new_state(most, d), new_numbering(places, most))


@compiled(runtime=False)
def same(a: NDArray, b: NDArray) -> bool:
    """True if two rows are equal."""
    different = np.int64(0)
    for i in range(len(a)):
        different |= a[i] ^ b[i]
    return different == 0
