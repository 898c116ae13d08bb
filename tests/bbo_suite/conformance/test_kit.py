"""The conformance kit finds errors: each broken plugin breaks the expected rule."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import bbo_suite
from bbo_suite import Evaluations, Problem, Space, Strategy, Structure, UserError
from bbo_suite.conformance.kit import check_plugin, problem_rules, strategy_rules
from bbo_suite.conformance.strategy_rules import deterministic


def broken(rules: list) -> list[str]:
    """Return the rules that raise."""
    found = []
    for words, rule in rules:
        try:
            rule()
        except Exception:
            found.append(words)
    return found


class Sound(Strategy):
    """Random search."""

    def ask(self, n: int):
        return self.task.space.sample(n, self.rng)


class Floats(Sound):
    def ask(self, n: int):
        return super().ask(n).astype(float)


class Forbidden(Sound):
    def ask(self, n: int):
        return np.zeros((n, len(self.task.space)), int) + self.task.space.sizes - 1


class TooMany(Sound):
    def ask(self, n: int):
        return super().ask(n + 1)


class Global(Sound):
    def ask(self, n: int):
        return np.random.randint(0, self.task.space.sizes, (n, len(self.task.space)))  # noqa: NPY002


class GlobalPython(Sound):
    def ask(self, n: int):
        random.random()
        return super().ask(n)


class Seeds(Sound):
    def tell(self, configs, values) -> None:
        np.random.seed(0)  # noqa: NPY002


class BreaksLate(Sound):
    """Fails from the hundredth evaluation on, like a model that is fitted only then."""

    told = 0

    def tell(self, configs, values) -> None:
        self.told += len(values)
        assert self.told < 100


class Careless(Sound):
    def tell(self, configs, values) -> None:
        values += 1.0


class Fragile(Sound):
    def tell(self, configs, values) -> None:
        assert np.isfinite(values).all()


class Greedy(Sound):
    """Fails if no candidate of a batch works."""

    def tell(self, configs, values) -> None:
        assert np.isfinite(values).any() or len(values) < 8


class Bold(Sound):
    """Assumes that a structure is declared."""

    level = bbo_suite.Level.STRUCTURE

    def ask(self, n: int):
        assert len(self.task.structure.starts)
        return super().ask(n)


class Impatient(Sound):
    """Proposes nothing valid in a batch of one."""

    def ask(self, n: int):
        return super().ask(n)[: n // 2 + 1] if n > 1 else np.zeros((1, 0), int)


class NoHelp(Sound):
    class Options:
        """Not even a dataclass."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy, words",
    [
        (Floats, "indices in range"),
        (Forbidden, "constraints allow"),
        (TooMany, "indices in range"),
        (Global, "global generator"),
        (Global, "same again"),
        (GlobalPython, "global generator"),
        (Seeds, "global generator"),
        (BreaksLate, "every kind of space"),
        (BreaksLate, "equal, failing"),
        (Careless, "told"),
        (Fragile, "equal, failing"),
        (Greedy, "equal, failing"),
        (Bold, "no structure"),
        (Impatient, "batches of one"),
        (NoHelp, "frozen dataclass"),
    ],
)
def test_a_broken_strategy_breaks_its_rule(strategy: type[Strategy], words: str) -> None:
    assert any(words in rule for rule in broken(strategy_rules(strategy)))


def test_a_sound_strategy_breaks_none() -> None:
    assert broken(strategy_rules(Sound)) == []


class Toy(Problem):
    """Counts ones."""

    unit = "ones + 1"

    def __init__(self) -> None:
        self.id, self.space, self.default = "toy/toy", Space(np.full(6, 2)), np.zeros(6, int)

    def evaluate(self, configs):
        return Evaluations.of(1.0 + configs.sum(axis=1))


class BadDefault(Toy):
    def evaluate(self, configs):
        return Evaluations.of(np.where(configs.any(axis=1), 1.0, np.inf))


class Free(Toy):
    def evaluate(self, configs):
        return Evaluations.of(configs.sum(axis=1))


class Complex(Toy):
    def evaluate(self, configs):
        return Evaluations.of(1j + configs.sum(axis=1))


class Texts(Toy):
    def evaluate(self, configs):
        return Evaluations.of(["1"] * len(configs))


class OddFeatures(Toy):
    def structure(self):
        return Structure(np.zeros(7, int), np.zeros(0, np.int32), np.full((6, 1), np.nan, np.float32), ("odd",))


class Order(Toy):
    def evaluate(self, configs):
        return Evaluations.of(1.0 + np.arange(len(configs)))


class Restless(Toy):
    count = 0

    def __init__(self) -> None:
        super().__init__()
        Restless.count += 1
        self.default = np.array([Restless.count % 2, 0, 0, 0, 0, 0])


class Noisy(Toy):
    noisy = True
    rng = np.random.default_rng(0)

    def evaluate(self, configs):
        return Evaluations.of((1.0 + configs.sum(axis=1)) * self.rng.uniform(1, 1.1, len(configs)))


class HidesNoise(Noisy):
    noisy = False


class Overpromises(Toy):
    optimum = 3.5


class NoUnit(Toy):
    unit = ""


class Speechless(Toy):
    def paste(self, config):
        return " "


@pytest.mark.parametrize(
    "problem, words",
    [
        (BadDefault, "default configuration"),
        (Free, "does not cost 0"),
        (Complex, "a finite cost"),
        (Texts, "a finite cost"),
        (OddFeatures, "a structure"),
        (Order, "in any order"),
        (Restless, "loaded again"),
        (HidesNoise, "unless it declares that it is noisy"),
        (Overpromises, "optimum"),
        (NoUnit, "unit"),
        (Speechless, "own syntax"),
    ],
)
def test_a_broken_problem_breaks_its_rule(problem: type[Toy], words: str) -> None:
    assert any(words in rule for rule in broken(problem_rules(problem)))


def test_a_sound_problem_breaks_none() -> None:
    assert broken(problem_rules(Toy)) == [] == broken(problem_rules(Noisy))


def test_long_runs_do_not_change_the_global_generators() -> None:
    with pytest.raises(AssertionError, match="differ"):
        deterministic(Global)  # the first time also looks which spaces it accepts
    before = random.getstate(), str(np.random.get_state())  # noqa: NPY002
    with pytest.raises(AssertionError, match="differ"):
        deterministic(Global)
    assert (random.getstate(), str(np.random.get_state())) == before  # noqa: NPY002


def test_check_of_a_problem_without_instances_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "none.py"
    file.write_text(
        "import bbo_suite\n\n\nclass P(bbo_suite.Problem):\n    def evaluate(self, configs):\n        return None\n"
    )
    with pytest.raises(UserError, match="instances"):
        list(check_plugin(file))
