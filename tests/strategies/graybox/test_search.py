"""The strategy `graybox` on toys whose parts are told: what it knows of parts, and how often it compiles all of them.

It learns from parts that were measured on other programs, and reads them from a safe file.
"""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numba import types
from numpy.typing import NDArray

from bbo_strategies.graybox import GrayBox, GrayBoxOptions
from bbo_strategies.graybox.part_costs import PartCosts
from bbo_strategies.graybox.part_search import FIRST_PASSES, PASSES
from bbo_strategies.graybox.pretraining import PartsOfOthers, save
from bbo_strategies.graybox.pretraining import load as load_parts
from bbo_suite import Evaluations, Parts, Space, Structure, Task, Told, UserError
from bbo_suite.compiled import compiled_for, handle, load
from bbo_suite.core.options import identifying
from bbo_suite.core.versions import PinnedFile
from bbo_suite.parts.cursor import CHANGE, DESCRIBE, KEY, Cursor, Function
from bbo_suite.parts.decomposition import Decomposition
from bbo_suite.parts.table import TableDecomposition
from bbo_suite.pretraining import Lesson

compiled = compiled_for(__file__)

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


D, WHOLE, LEVELS, BATCH = 40, 10, 5, 20


class Counted(NamedTuple):
    """A candidate, and the changes so far: those of parameters that make all parts anew, and the others."""

    config: NDArray[np.int64]
    changes: NDArray[np.int64]


_TYPE = types.NamedTuple([types.Array(types.int64, 1, "C")] * 2, Counted)


@compiled.callback(CHANGE)
def _change(address: int, columns: NDArray, values: NDArray, touched: NDArray) -> int:
    counted, whole = load(address, _TYPE), 0
    for i in range(len(columns)):
        counted.config[columns[i]] = values[i]
        touched[i] = columns[i]
        whole |= columns[i] < WHOLE
    counted.changes[whole] += 1
    return -1 if whole else len(columns)


@compiled.callback(KEY)
def _key(address: int, place: int, key: NDArray) -> float:
    key[0] = np.uint64(place * LEVELS + load(address, _TYPE).config[place])
    return 1.0


@compiled.callback(DESCRIBE)
def _describe(address: int, place: int, features: NDArray) -> None:
    features[0], features[1] = place, load(address, _TYPE).config[place]


class Apart(Decomposition):
    """Each parameter is a part of its own."""

    feature_names = ("place", "value")

    def __init__(self) -> None:
        self.counted = Counted(np.zeros(D, np.int64), np.zeros(2, np.int64))
        self._memory = handle(self.counted)

    def describe(self, configs: NDArray):
        raise NotImplementedError

    def cursor(self, config: NDArray) -> Cursor:
        self.counted.config[:] = config
        functions = Function(_change, CHANGE), Function(_key, KEY), Function(_describe, DESCRIBE)
        return Cursor(*functions, self._memory, D, 2, self, range(WHOLE))


def test_few_moves_of_a_search_compile_the_whole_program() -> None:
    parts, space, rng = Apart(), Space(np.full(D, LEVELS)), np.random.default_rng(0)
    costs = rng.random((D, LEVELS))
    structure = Structure(np.zeros(D + 1, np.int64), np.zeros(0, np.int32), np.ones((D, 1)), ("one",), parts=parts)
    strategy = GrayBox(Task("toy", space, np.zeros(D, np.int8), "s", structure), 100, rng, GrayBoxOptions())
    for n in (1, BATCH, BATCH):
        configs, before = strategy.ask(n).astype(np.int64), parts.counted.changes.copy()
        keys, told = np.arange(D) * LEVELS + configs, costs[np.arange(D), configs]
        parts_told = Parts(np.arange(n + 1) * D, keys.astype(np.uint64).reshape(-1), np.ones(n * D), told.reshape(-1))
        strategy.receive(Told(configs, told.sum(axis=1), parts_told))
    strategy.ask(BATCH)
    others, whole = parts.counted.changes - before
    steps = 2 * FIRST_PASSES + (BATCH - 1) * PASSES  # the first search copies from other candidates as well
    assert 100 < whole <= 2 * steps + 2 * BATCH < others / 10  # a move may be taken back; a search begins and ends
    assert (configs[:, :WHOLE] != 0).any(axis=0).mean() > 0.5


def lesson(toy: Kernels) -> Lesson:
    def parts(configs: np.ndarray) -> Evaluations:
        told = toy.parts_of(configs)
        return Evaluations(told.sums(), np.zeros(len(configs), np.int8), parts=told)

    return Lesson(toy.task, 1.0, lambda configs: parts(configs).values, parts)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out, shown = tmp_path_factory.mktemp("models") / "p.npz", []
    GrayBox.pretrain([lesson(Kernels())] * 2, 81, np.random.default_rng(0), GrayBoxOptions(), out, shown_by(shown))
    assert [done for done, _ in shown] == [40, 80] and shown[-1][1].endswith(" parts")
    return out


def shown_by(shown: list[tuple[int, str]]) -> object:
    return lambda done, words: shown.append((done, words))


def started(file: Path | str, task: Task | None = None) -> GrayBox:
    options = GrayBoxOptions(pretrained=PinnedFile(str(file)))
    return GrayBox(task or Kernels().task, 50, np.random.default_rng(0), options)


def test_it_predicts_before_it_measures(file):
    toy, strategy = Kernels(), started(file)
    assert max(strategy.diagnostics().values()) > 0.8  # a score, while no part is measured
    assert strategy.diagnostics()["parts"] == 0
    for _ in range(2):
        configs = strategy.ask(20)
        parts = toy.parts_of(configs)
        strategy.receive(Told(configs, parts.sums(), parts))
    alone = GrayBox(toy.task, 50, np.random.default_rng(0), GrayBoxOptions())
    first = alone.ask(20)
    alone.receive(Told(first, toy.parts_of(first).sums(), toy.parts_of(first)))
    assert parts.sums().min() < toy.parts_of(alone.ask(20)).sums().min()


def test_a_file_is_read_as_it_was_written(tmp_path):
    parts = PartsOfOthers(("a", "b"), 1, np.arange(6.0).reshape(3, 2), np.array([-1.0, 2.0, 0.5]))
    save(parts, tmp_path / "p.npz")
    declared = Kernels().parts
    declared.feature_names, declared.estimate = ("a", "b"), 1
    again = load_parts(str(tmp_path / "p.npz"), declared, "toy/x")
    assert np.array_equal(again.features, parts.features) and np.array_equal(again.logs, parts.logs)


def changed(file: Path, out: Path, header: dict, arrays: dict) -> Path:
    with np.load(file) as stored:
        found = dict(stored)
    found["header"] = np.frombuffer(json.dumps(json.loads(found["header"].tobytes()) | header).encode(), np.uint8)
    found |= arrays
    buffer = io.BytesIO()
    np.savez(buffer, **found)
    out.write_bytes(buffer.getvalue())
    return out


@pytest.mark.parametrize(
    ("header", "arrays", "complaint"),
    [
        ({"version": 99}, {}, "has version 99"),
        ({"features": ["x"]}, {}, "does not fit toy/kernels"),
        ({"estimate": 0}, {}, "does not fit toy/kernels"),
        ({}, {"logs": np.zeros(3)}, "is damaged"),
        ({}, {"logs": np.array([{}], object)}, "is not a file of parts for graybox"),
        ({}, {"features": np.zeros(3)}, "is damaged"),
        ({}, {"header": np.zeros(3, np.uint8)}, "is not a file of parts for graybox"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_sentence(file, tmp_path, header, arrays, complaint):
    with pytest.raises(UserError, match=complaint):
        started(changed(file, tmp_path / "p.npz", header, arrays))


def test_other_files_and_tasks_without_models_are_refused(file, tmp_path):
    (tmp_path / "p.npz").write_bytes(b"PK")
    with pytest.raises(UserError, match="not a file of parts"):
        started(tmp_path / "p.npz")
    toy = Kernels()
    bare = replace(toy.task, structure=replace(toy.task.structure, parts=None))
    with pytest.raises(UserError, match="without pretrained"):
        started(file, bare)
    given = (40, np.random.default_rng(0), GrayBoxOptions(), tmp_path / "new.npz", lambda *_: None)
    with pytest.raises(UserError, match="does not describe its parts"):
        GrayBox.pretrain([replace(lesson(toy), task=bare)], *given)
    other = Kernels()
    other.parts.feature_names = ("x", *other.parts.feature_names[1:])
    with pytest.raises(UserError, match="different features"):
        GrayBox.pretrain([lesson(toy), lesson(other)], *given)


def test_without_a_file_a_run_has_the_identity_that_it_had_before(file):
    assert "pretrained" not in identifying(GrayBoxOptions())
    assert identifying(GrayBoxOptions(pretrained=PinnedFile(str(file))))["pretrained"].startswith(f"{file}#")
