"""The strategy `graybox` on toys whose parts are told, and what it knows of parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bbo_strategies.graybox import GrayBox, GrayBoxOptions
from bbo_strategies.graybox.part_costs import PartCosts
from bbo_suite import Parts, Space, Structure, Task, Told
from bbo_suite.parts.table import TableDecomposition

pytestmark = pytest.mark.slow  # compiles long

KERNELS, SLOTS, VALUES = 30, 3, 6


class Kernels:
    """Kernels of three parameters each; half of them are equal to the other half."""

    def __init__(self, failing: bool = False) -> None:
        rng = np.random.default_rng(0)
        self.sizes = np.tile(rng.integers(1, 100, (KERNELS // 2, 2)), (2, 1)).astype(float)
        self.best = np.tile(rng.integers(0, VALUES, (KERNELS // 2, SLOTS)), (2, 1))
        self.failing = failing
        d = KERNELS * SLOTS
        columns = np.arange(d).reshape(KERNELS, SLOTS)
        contents = np.arange(KERNELS, dtype=np.uint64) % (KERNELS // 2)
        numbers = np.tile(2.0 ** np.arange(VALUES), (d, 1))
        self.parts = TableDecomposition(
            list(columns), contents, np.ones(KERNELS), self.sizes, ("rows", "columns"), numbers
        )
        self.space = Space(np.full(d, VALUES))
        others = np.array([[1, 2], [0, 2], [0, 1]])[np.arange(d) % SLOTS] + np.arange(d)[:, None] // SLOTS * SLOTS
        starts, neighbours = np.arange(0, 2 * d + 1, 2), others.reshape(-1).astype(np.int32)
        structure = Structure(starts, neighbours, np.ones((d, 1), np.float32), ("one",), parts=self.parts)
        self.task = Task("toy/kernels", self.space, np.zeros(d, self.space.dtype), "seconds", structure)

    def parts_of(self, configs: np.ndarray) -> Parts:
        described = self.parts.describe(configs)
        rows = configs.reshape(len(configs), KERNELS, SLOTS).astype(int)
        costs = self.sizes.prod(axis=1) * (1 + ((rows - self.best) ** 2).sum(axis=2))
        if self.failing:
            costs = np.where(rows.sum(axis=2) > self.best.sum(axis=1) + 2, np.inf, costs)
        return Parts(described.starts, described.keys, described.counts, costs.reshape(-1)).merged()


def gaps(toy: Kernels, budget: int, tells: bool = True, noise: float = 0.0, **options: object) -> list[float]:
    """Return how far the best candidate is above the optimum after each batch, as a share of it."""
    strategy = GrayBox(toy.task, budget, np.random.default_rng(1), GrayBoxOptions(**options))
    rng, best, used = np.random.default_rng(2), [np.inf], 0
    lowest = toy.parts_of(toy.best.reshape(1, -1)).sums()[0]
    while used < budget:
        configs = strategy.ask(min(20, budget - used))
        parts, used = toy.parts_of(configs), used + len(configs)
        best.append(min(best[-1], parts.sums().min() / lowest - 1))
        told = replace(parts, costs=parts.costs * np.exp(noise * rng.normal(size=len(parts.costs))))
        strategy.receive(Told(configs, told.sums(), told if tells else None))
    return best[1:]


@pytest.fixture(scope="module")
def toy():
    return Kernels()


@pytest.mark.parametrize(("budget", "most"), [(61, 0.1), (201, 1e-9)])
def test_it_finds_the_best_of_every_kernel_and_soon_a_good_one(toy, budget, most):
    assert gaps(toy, budget)[-1] < most


def test_it_avoids_parts_that_fail():
    assert gaps(Kernels(failing=True), 400)[-1] < 0.3


def test_without_parts_it_is_a_search(toy):
    found = gaps(toy, 200, tells=False)
    assert found[-1] < found[0]


@pytest.mark.parametrize("option", ["models", "memory", "draws", "estimate"])
def test_every_mechanism_can_be_left_out(toy, option):
    found = gaps(toy, 60, **{option: False})
    assert found[-1] <= found[0]


def test_noise_costs_little(toy):
    assert gaps(toy, 300, noise=0.02)[-1] < 0.2


def test_models_know_parts_that_were_not_measured(toy):
    strategy = GrayBox(toy.task, 200, np.random.default_rng(1), GrayBoxOptions())
    for _ in range(5):
        configs = strategy.ask(20)
        parts = toy.parts_of(configs)
        strategy.receive(Told(configs, parts.sums(), parts))
    assert strategy.diagnostics()["parts"] > 300
    assert max(v for name, v in strategy.diagnostics().items() if name != "parts") > 0.8


@pytest.mark.parametrize("failing", [False, True])
def test_without_a_description_changes_are_credited_with_the_parts_that_they_move(failing):
    found = gaps(Kernels(failing), 200, describe=False)
    assert found[-1] < 0.5 * found[0]


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
