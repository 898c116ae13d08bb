"""Model-based optimization: regressors learn what changes are worth, an evolutionary search maximises the promise."""

from .strategy import ModelBasedOptimization, ModelOptions

__all__ = ["ModelBasedOptimization", "ModelOptions"]
