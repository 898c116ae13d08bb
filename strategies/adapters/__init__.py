"""Optimizers of other libraries as strategies, such as `optuna:TPESampler`, `nevergrad:NGOpt`, `pymoo:GA`."""
