"""Local search on the structure that a problem declares."""

from .strategy import LocalOptions, LocalSearch

__all__ = ["LocalOptions", "LocalSearch"]
