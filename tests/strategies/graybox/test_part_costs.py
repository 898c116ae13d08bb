"""What `graybox` knows of parts: means of repeats, shrunk to their family where they are noisy."""

from __future__ import annotations

import numpy as np
import pytest

from bbo_strategies.graybox import GrayBoxOptions
from bbo_strategies.graybox.part_costs import PartCosts
from bbo_suite import Parts

from .test_search import Kernels

pytestmark = pytest.mark.slow  # compiles long

M = 40


def learned(costs: list[np.ndarray]) -> PartCosts:
    """Return what is known after some measurements of the same M parts of one family, whose true cost is 1."""
    made = PartCosts(Kernels().parts, np.zeros(1, np.int64), GrayBoxOptions(), np.random.default_rng(0))
    keys, features = np.arange(1, M + 1, dtype=np.uint64), np.ones((M, made.memory.features.shape[1]))
    features[:, 0] = np.linspace(1, 1.1, M)
    made.memory.remember(keys, features, np.zeros(M, np.int64))
    for measured in costs:
        made.learn(Parts(np.array([0, M]), keys, np.ones(M), measured))
    return made


def noisy(repeats: int) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [np.exp(0.1 * rng.normal(size=M)) for _ in range(repeats)]


def test_repeats_of_a_part_are_averaged():
    first, second = noisy(2)
    made = learned([first, second])
    np.testing.assert_allclose(made.memory.costs, (first + second) / 2)
    assert made.memory.repeats.tolist() == [2] * M and 0.005 < made.memory.noise < 0.02


def test_noisy_parts_are_shrunk_to_the_mean_of_their_family():
    measured = noisy(2)
    made, parts = (
        learned(measured),
        Parts(np.arange(M + 1), np.arange(1, M + 1, dtype=np.uint64), np.ones(M), np.ones(M)),
    )
    estimated = made.totals(parts)
    assert np.abs(np.log(estimated)).mean() < 0.6 * np.abs(np.log(np.mean(measured, axis=0))).mean()
    exact = learned(measured[:1])
    np.testing.assert_array_equal(exact.totals(parts), measured[0])
