"""The one-shot tuner: a predictor that was trained on other tasks stands in for all measurements but the last few."""

from .strategy import OneShot

__all__ = ["OneShot"]
