"""Model-based optimization: models of costs propose what an evolutionary search expects to gain on them."""

from .search import ModelBasedOptimization, ModelOptions

__all__ = ["ModelBasedOptimization", "ModelOptions"]
