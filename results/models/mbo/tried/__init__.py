"""Designs of `mbo` that were tried, each as replacements of its parts."""

from __future__ import annotations

from . import choices, features, models, targets

_BEST = {
    "ensemble.targets": targets.best_tenth,
    "neighbours.Ensemble": models.Weighted,
    "neighbours.Failures": models.KnownFailures,
}
_POOLED = {"regressors.score": models.pooled}
DESIGNS: dict[str, dict[str, object]] = {
    "classified": {"ensemble.targets": targets.improves},
    "best tenth": _BEST,
    "best tenth, diverse": {**_BEST, "strategy.ModelNeighbours": choices.Diverse},
    "signed": {"ensemble.targets": targets.signed_logarithm},
    "root": {"ensemble.targets": targets.root},
    "diverse": {"strategy.ModelNeighbours": choices.Diverse},
    "shared": {"neighbours.Features": features.SharedStatistics},
    "context": {"neighbours.Features": features.Context},
    "share by hits": {"neighbours.Arms": choices.HitArms},
    "weights by hits": {"neighbours.Ensemble": models.ByHits},
    "last singles": {"strategy.ModelNeighbours": choices.LastSingles},
    "rescaled": {"ensemble.targets": targets.rescaled},
    "pooled": _POOLED,
    "pooled, diverse": {**_POOLED, "strategy.ModelNeighbours": choices.Diverse},
    "pooled, weights by hits": {**_POOLED, "neighbours.Ensemble": models.ByHits},
    "pooled, best tenth": {**_POOLED, **_BEST},
}
"""What takes the place of what in `bbo_strategies.mbo`, by design."""
