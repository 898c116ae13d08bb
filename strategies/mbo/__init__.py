"""Model-based optimization: regressors predict gains, an evolutionary search maximises an acquisition function."""

from .search import ModelBasedOptimization, ModelOptions

__all__ = ["ModelBasedOptimization", "ModelOptions"]
