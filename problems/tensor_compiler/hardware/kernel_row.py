"""One kernel as a row of numbers, and the flags of code generation for it: the columns of both."""

from __future__ import annotations

from enum import IntEnum


class Kernel(IntEnum):
    """Columns of the row that describes a kernel; all are floats.

    A kernel has up to three places of work: the loop over the result (for a reduction, over its input), and what is
    computed in front of the left and of the right operand of a matrix product.
    """

    READ = 0  # bytes that one pass reads from memory, at each place
    READ_LEFT = 1
    READ_RIGHT = 2
    WORK = 3  # vector operations of one pass, at each place
    WORK_LEFT = 4
    WORK_RIGHT = 5
    WRITTEN = 6  # bytes of the results
    OPERANDS = 7  # arrays read
    OPERATIONS = 8  # operations fused in the kernel
    GROUPS = 9  # GROUPS to TAPS: the matrix product in the kernel, zeros if there is none
    ROWS = 10
    COLUMNS = 11
    DEPTH = 12
    TAPS = 13
    SUMS = 14  # bytes of the heavy operation's own result in 32 bits
    OUTER = 15  # OUTER to WIDTH: extents of the loop
    HEIGHT = 16
    WIDTH = 17
    SIZE = 18  # bytes of an element of the result


KERNEL_WIDTH = len(Kernel)
PRODUCT_COLUMNS = Kernel.SUMS - Kernel.GROUPS
PLACES = 3
"""Places of work in a kernel; READ and WORK have a column for each."""

DEEP = 32.0
"""Taps lie side by side in the depth of the matrix unit if each is at least this deep; otherwise they take turns."""


class LoopAxis(IntEnum):
    """Axes of the tile of a loop."""

    OUTER = 0
    HEIGHT = 1
    WIDTH = 2


class ProductAxis(IntEnum):
    """Axes of the tile of a matrix product."""

    ROWS = 0
    COLUMNS = 1
    DEPTH = 2


class Flag(IntEnum):
    """Columns of the flags of a kernel."""

    BUFFERS = 0  # windows of each operand in the scratchpad
    UNROLL = 1
    PREFETCH = 2  # windows fetched ahead
    ORDER = 3  # 1: the left operand's tile stays and the right one moves; 0: the reverse
    PARTIALS = 4  # partial sums of a matrix product
    VECTORS = 5  # vector registers handled at once


DEFAULT_FLAGS = (2.0, 4.0, 0.0, 0.0, 1.0, 2.0)
"""The default of each flag; the compiler chooses ORDER together with the tile."""
