"""Search on the costs of parts: measured parts are remembered, others predicted, and most steps are virtual."""

from .strategy import GrayBox, GrayBoxOptions

__all__ = ["GrayBox", "GrayBoxOptions"]
