"""A mesh of devices, and what it costs to change how a tensor lies on it; a list of tasks loads this, and no more."""

from __future__ import annotations

from dataclasses import dataclass

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

    def share(self, spec: Spec) -> int:
        """Return into how many parts a tensor is split."""
        parts = 1
        for devices, dimension in zip(self.axes, spec, strict=True):
            parts *= devices if dimension >= 0 else 1
        return parts

    def reshard(self, size: float, have: Spec, want: Spec) -> float:
        """Return the nanoseconds to bring a tensor of `size` bytes from one spec to another.

        An axis that splits another dimension afterwards needs an all-to-all, one that splits none any more an
        all-gather; one that begins to split only keeps a part of what each device has. All-to-alls come first, when the
        tensor is still small on each device.
        """
        now, nanoseconds = list(have), 0.0
        for moves in (True, False):
            for axis, devices in enumerate(self.axes):
                if now[axis] >= 0 and now[axis] != want[axis] and (want[axis] >= 0) == moves:
                    held = size / self.share(tuple(now))
                    nanoseconds += self._moved(held * (devices - 1) / devices if moves else held * (devices - 1))
                    now[axis] = want[axis]
        return nanoseconds

    def add_up(self, size: float, axes: list[int]) -> float:
        """Return the nanoseconds of all-reduces of a tensor that takes `size` bytes on each device."""
        return sum(self._moved(2 * size * (self.axes[axis] - 1) / self.axes[axis]) for axis in axes)

    def _moved(self, size: float) -> float:
        return LATENCY + size / BYTES_PER_NANOSECOND
