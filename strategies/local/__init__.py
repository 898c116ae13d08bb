"""Local search on the structure that a problem declares."""

from .options import LocalOptions
from .strategy import LocalSearch

__all__ = ["LocalOptions", "LocalSearch"]
