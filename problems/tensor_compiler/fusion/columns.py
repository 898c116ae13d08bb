"""The columns of the arrays of `FusionState`."""

from __future__ import annotations

from enum import IntEnum


class Span(IntEnum):
    """Columns of `FusionState.span`."""

    START = 0
    COUNT = 1


class Member(IntEnum):
    """Columns of `FusionState.member`."""

    KERNEL = 0
    PLACE = 1


class Use(IntEnum):
    """Columns of `FusionState.use`."""

    SEEN = 0  # when the row was last cleared, by the clock
    REACHED = 1  # the rows seen, a list
    COMPUTED = 2  # places where the node is to be computed
    READ = 3  # places where it is read


class Amount(IntEnum):
    """Columns of `FusionState.amount`."""

    MOVED = 0  # bytes of one reading
    TIMES = 1


class Tally(IntEnum):
    """Columns of `FusionState.tally`."""

    FUSED = 0  # operations
    OPERANDS = 1
    HEAVY = 2  # the heavy operation, or -1


class Counter(IntEnum):
    """Places in `FusionState.counter`."""

    CLOCK = 0  # rows of `use` that were cleared earlier are stale
    FILLED = 1  # rows of `member` in use
    TOUCHED = 2  # kernels in `touched`
    KNOWN = 3  # of `Known`


class Known(IntEnum):
    """What is known of the last candidate."""

    NOTHING = 0
    PLAIN = 1  # it set nothing for the kernels
    TUNED = 2  # it had settings
