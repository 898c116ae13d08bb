"""Search on graphs of pair costs: nearly all nodes are set at once to their exact minimum."""

from .pair_search import PairSearch

__all__ = ["PairSearch"]
