"""Optimizers of other libraries as strategies: `optuna:TPESampler`, `nevergrad:NGOpt`, `pymoo:GA` and their likes."""
