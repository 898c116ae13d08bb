"""Statistics of runs: arrays in, arrays out. Costs are minimised; scores (speedups, gains) are maximised."""

from .baseline import expected_best, over_random
from .curves import SMALLEST_GAIN, SMALLEST_GAIN_TEXT, area_under, best_so_far, fraction_of_optimum, quartiles
from .hitting import expected_running_time, first_hits, runtime_ecdf
from .intervals import (
    bootstrap_interval,
    difference_interval,
    interquartile_mean,
    mean_interval,
    probability_of_improvement,
)
from .ranking import Ranking, complete_block, performance_profile, ranking
from .significance import (
    holm,
    rank_sum_p,
    rank_sum_p_values,
    signed_rank_p,
    signed_rank_sum,
    smallest_rank_sum_p,
    smallest_signed_rank_p,
)

__all__ = [
    "SMALLEST_GAIN",
    "SMALLEST_GAIN_TEXT",
    "Ranking",
    "area_under",
    "best_so_far",
    "bootstrap_interval",
    "complete_block",
    "difference_interval",
    "expected_best",
    "expected_running_time",
    "first_hits",
    "fraction_of_optimum",
    "holm",
    "interquartile_mean",
    "mean_interval",
    "over_random",
    "performance_profile",
    "probability_of_improvement",
    "quartiles",
    "rank_sum_p",
    "rank_sum_p_values",
    "ranking",
    "runtime_ecdf",
    "signed_rank_p",
    "signed_rank_sum",
    "smallest_rank_sum_p",
    "smallest_signed_rank_p",
]
