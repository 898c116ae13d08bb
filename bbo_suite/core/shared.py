"""What strategies share: arrays of a space and a structure, which a strategy that wrote into them would change."""

from __future__ import annotations

import numpy as np


def keep_unchanged(holder: object) -> None:
    """Make the arrays that an object holds read-only."""
    for value in vars(holder).values():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
