"""Reinforcement learning on computation graphs."""

from .strategy import ReinforcementLearning, ReinforcementOptions

__all__ = ["ReinforcementLearning", "ReinforcementOptions"]
