"""Statistics of runs: arrays in, arrays out. Costs are minimised; scores (speedups, gains) are maximised."""

from .baseline import expected_best, over_random
from .comparisons import Ranking, adjusted, paired, ranking
from .curves import area_under, best_so_far, fraction_of_optimum, quartiles
from .gains import LEAST_GAIN, LEAST_WORDS
from .hitting import expected_running_time, first_hits, runtime_ecdf
from .intervals import bootstrap_interval, interquartile_mean, mean_interval, probability_of_improvement
from .profiles import performance_profile
from .whole import whole

__all__ = [
    "LEAST_GAIN",
    "LEAST_WORDS",
    "Ranking",
    "adjusted",
    "area_under",
    "best_so_far",
    "bootstrap_interval",
    "expected_best",
    "expected_running_time",
    "first_hits",
    "fraction_of_optimum",
    "interquartile_mean",
    "mean_interval",
    "over_random",
    "paired",
    "performance_profile",
    "probability_of_improvement",
    "quartiles",
    "ranking",
    "runtime_ecdf",
    "whole",
]
