"""A mesh of devices, and what it costs to change how a tensor lies on it; a list of tasks loads this, and no more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

BYTES_PER_NANOSECOND = 50.0
"""Bandwidth of a link of each axis, as of one link of a TPU v5e."""
LATENCY = 1000.0
"""Nanoseconds of a collective besides its bytes."""

Spec = tuple[int, ...]
"""The dimension of a tensor that each axis of the mesh splits; -1: it does not split the tensor."""


@dataclass(frozen=True)
class Mesh:
    """A mesh of devices.

    Attributes:
      axes: the number of devices along each axis.
    """

    axes: tuple[int, ...]

    def share(self, specs: ArrayLike) -> NDArray[np.int64]:
        """Return into how many parts a tensor is split, for specs `(..., axes)`."""
        return np.where(np.asarray(specs) >= 0, self.axes, 1).prod(axis=-1)

    def reshard(self, size: float, have: ArrayLike, want: ArrayLike) -> NDArray[np.float64]:
        """Return the nanoseconds to bring a tensor of `size` bytes from one spec to another, for specs `(..., axes)`.

        An axis that splits another dimension afterwards needs an all-to-all, one that splits none any more an
        all-gather; one that begins to split only keeps a part of what each device has. All-to-alls come first, when the
        tensor is still small on each device.
        """
        now, wanted = (specs.copy() for specs in np.broadcast_arrays(have, want))
        nanoseconds = np.zeros(now.shape[:-1])
        for moves in (True, False):
            for axis, devices in enumerate(self.axes):
                old, new = now[..., axis], wanted[..., axis]
                changes = (old >= 0) & (old != new) & ((new >= 0) == moves)
                received = size / self.share(now) * (devices - 1)
                nanoseconds += np.where(changes, self._moved(received / devices if moves else received), 0.0)
                now[..., axis] = np.where(changes, new, old)
        return nanoseconds

    def add_up(self, size: NDArray[np.float64], axes: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the nanoseconds of all-reduces of tensors that take `(...)` bytes on each device.

        Args:
          axes: `(..., axes)` along which of them.
        """
        nanoseconds = np.zeros(size.shape)
        for axis, devices in enumerate(self.axes):
            nanoseconds += np.where(axes[..., axis], self._moved(2 * size * (devices - 1) / devices), 0.0)
        return nanoseconds

    def _moved(self, size: NDArray[np.float64]) -> NDArray[np.float64]:
        return LATENCY + size / BYTES_PER_NANOSECOND
