"""Model-based optimization: regressors learn the cost, an evolutionary search maximises what they promise."""

from .strategy import ModelBasedOptimization, ModelOptions

__all__ = ["ModelBasedOptimization", "ModelOptions"]
