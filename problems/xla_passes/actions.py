"""The values of a slot of the sequence.

The passes of a sequence are XLA:CPU's `PASSES` and `LOWERINGS`. The lowerings that a sequence leaves out run after it,
so that a sequence gains nothing by skipping necessary work. A search can choose when they run. The passes of
`PREPARATION` run once before every sequence, as in XLA. Those of `NEVER` come after the count.
"""

from __future__ import annotations

from ..tensor_compiler.hlo.passes import LOWERINGS, PASSES

NOTHING = "nothing"
PIPELINE = "pipeline"
"""All passes and lowerings in XLA's order, with its loops over them, repeated until nothing changes."""
ACTIONS = (NOTHING, *PASSES, *LOWERINGS, PIPELINE)
SLOTS = 16

MEMORY = 8 << 30
"""Largest address space of a child, in bytes."""
