"""Search on the costs of parts: measured parts are remembered, others predicted, and most steps are virtual."""

from .options import GrayBoxOptions
from .strategy import GrayBox

__all__ = ["GrayBox", "GrayBoxOptions"]
