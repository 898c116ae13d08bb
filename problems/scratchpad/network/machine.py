"""A network on a machine: its arrays, its space, and the memory that compiled code works on."""

from __future__ import annotations

import numpy as np

from bbo_suite.compiled import handle

from .arrays import arrays
from .graph import Network
from .space import columns
from .state import State, new_plan

GRANULE = 64
"""Bytes that DRAM moves at least at a time."""


class Machine:
    """What evaluation, the default and the parts of one instance share.

    Args:
      capacity: bytes of the scratchpad.
      banks: over which one dimension of each tensor lies; 0 if it does not matter where data lies.
    """

    def __init__(self, network: Network, capacity: int, banks: int = 0) -> None:
        self.network, self.capacity, self.banks = network, capacity, banks
        self.net = arrays(network)
        self.columns, self.space, self.owners = columns(network, self.net, banks > 0)
        self.ops = len(network.operators)
        self.plan = new_plan(self.ops, len(network.tensors))
        self.limits = np.array([capacity, GRANULE, banks], np.int64)
        self._memory = handle(State(self.net, self.columns, self.plan, self.limits))

    @property
    def at(self) -> int:
        """The handle."""
        return self._memory.ctypes.data
