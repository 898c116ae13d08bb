import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import bbo_suite
from bbo_suite import Evaluations, Parts, Problem, Space, Structure, UserError
from bbo_suite.compiled import mix
from bbo_suite.conformance.kit import problem_rules
from bbo_suite.core.evaluation import evaluate
from bbo_suite.parts.decomposition import Description
from bbo_suite.parts.parts import concatenated
from bbo_suite.parts.table import PairDecomposition, TableDecomposition


class Knapsack(Problem):
    """Six items in three bags of two; a bag costs the square of its load."""

    instances = ("six",)

    def __init__(self, instance="six"):
        self.space, self.default = Space(np.full(6, 3)), np.zeros(6, int)
        columns = [np.array([i, i + 1]) for i in (0, 2, 4)]
        features, numbers = np.ones((3, 1)), np.tile(np.arange(3.0), (6, 1))
        contents, counts = np.array([7, 7, 8], np.uint64), np.array([1.0, 2.0, 1.0])
        self.parts = TableDecomposition(columns, contents, counts, features, ("one",), numbers)

    def evaluate(self, configs):
        return Evaluations.of(self._bags(configs) @ [1.0, 2.0, 1.0])

    def evaluate_parts(self, configs):
        described = self.parts.describe(configs)
        costs = self._bags(configs).reshape(-1)
        values = self._bags(configs) @ [1.0, 2.0, 1.0]
        parts = Parts(described.starts, described.keys, described.counts, costs)
        return Evaluations(values, np.zeros(len(values), np.int8), parts=parts)

    def structure(self):
        none = np.zeros(7, np.int64), np.zeros(0, np.int32)
        return Structure(*none, np.ones((6, 1), np.float32), ("one",), parts=self.parts)

    def _bags(self, configs):
        return (configs.reshape(-1, 3, 2).astype(float) @ [1.0, 3.0]) ** 2 + 1


def told(changed):
    """Return the problem with other parts."""

    class Changed(Knapsack):
        def evaluate_parts(self, configs):
            result = super().evaluate_parts(configs)
            return Evaluations(result.values, result.status, parts=changed(result.parts))

    return Changed()


def test_a_table_knows_whether_parts_share_parameters():
    shared = [np.array([0, 1]), np.array([1, 2])]
    numbers, contents = np.zeros((3, 2)), np.zeros(2, np.uint64)
    assert Knapsack().parts.is_separable
    assert not TableDecomposition(shared, contents, np.ones(2), np.ones((2, 1)), ("one",), numbers).is_separable


@pytest.mark.parametrize("rule", problem_rules(Knapsack), ids=lambda rule: rule[0])
def test_a_problem_with_a_table_of_parts_follows_the_rules(rule):
    if "source" not in rule[0]:
        rule[1]()


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        (lambda p: Parts(p.starts, p.keys, p.counts, p.costs * 1.001), "add up to"),
        (lambda p: Parts(p.starts[:-1], p.keys, p.counts, p.costs), "numbers from 0 up to"),
        (lambda p: Parts(p.starts, p.keys, p.counts[:-1], p.costs), "return one for each"),
        (lambda p: Parts(p.starts, p.keys, p.counts, p.costs * np.nan), "nan among its costs"),
        (lambda p: Parts(p.starts, p.keys, -p.counts, p.costs), "among its counts"),
        (lambda p: Parts(p.starts, p.keys.astype(np.int64), p.counts, p.costs), "use uint64"),
        (lambda p: Parts(p.starts, p.keys, p.counts, [[1.0], [2.0, 3.0]]), "the costs of parts must be one list of"),
        (lambda p: Parts(p.starts, p.keys.reshape(-1, 1), p.counts, p.costs), "the keys of parts must be one list of"),
        (lambda p: [1], "return bbo_suite.Parts"),
    ],
)
def test_parts_that_cannot_be_are_refused_with_a_sentence(changed, complaint):
    with pytest.raises(UserError, match=complaint):
        evaluate(told(changed), np.ones((4, 6), np.int8), with_parts=True)


class Asks(Knapsack):
    """Describes its parts by what an evaluation says."""

    def structure(self):
        self.evaluate(np.zeros((1, 6), np.int8))
        return super().structure()


class Remembers(Knapsack):
    """Describes a cost that it knows from an evaluation."""

    def __init__(self, instance="six"):
        super().__init__(instance)
        self.plain, self.parts, self.known = self.parts, self, {}
        self.feature_names = self.plain.feature_names

    def describe(self, configs):
        found = self.plain.describe(configs)
        first = [self.known.get(key, 0.0) for key in found.keys.tolist()]
        return Description(found.starts, found.keys, found.counts, np.c_[first, found.features[:, 1:]])

    def cursor(self, config):
        return None

    def evaluate_parts(self, configs):
        described = self.plain.describe(configs)
        self.known |= dict(zip(described.keys.tolist(), self._bags(configs).ravel().tolist(), strict=True))
        values, costs = self.evaluate(configs).values, self._bags(configs).reshape(-1)
        parts = Parts(described.starts, described.keys, described.counts, costs)
        return Evaluations(values, np.zeros(len(values), np.int8), parts=parts)


class Collides(Knapsack):
    """Gives parts of different costs one key."""

    def evaluate_parts(self, configs):
        parts = (found := super().evaluate_parts(configs)).parts
        return Evaluations(
            found.values, found.status, parts=Parts(parts.starts, parts.keys % np.uint64(2), parts.counts, parts.costs)
        )


class Describes(Knapsack):
    """Describes its parts in another way."""

    estimate = None

    def __init__(self, instance="six"):
        super().__init__(instance)
        self.plain, self.feature_names = self.parts, ("told",)

    def structure(self):
        return replace(super().structure(), parts=self)

    def described(self, configs, features):
        found = self.plain.describe(configs)
        return Description(found.starts, found.keys, found.counts, features)

    def cursor(self, config):
        return None


class Leaks(Describes):
    def describe(self, configs):
        return self.described(configs, 2 * self._bags(configs).reshape(-1, 1))


class Short(Describes):
    def describe(self, configs):
        found = self.plain.describe(configs)
        return Description(found.starts, found.keys, found.counts[:-1], np.ones((3 * len(configs), 1)))


class Raises(Describes):
    def describe(self, configs):
        raise KeyError("x")


def complaints(problem):
    for _, rule in problem_rules(problem):
        try:
            rule()
        except (AssertionError, UserError) as error:
            yield str(error)


@pytest.mark.parametrize(
    ("problem", "complaint"),
    [
        (Leaks, "the feature 'told' of a part is its cost, or in proportion to it"),
        (Short, r"describe: the counts of parts have shape \(26,\) for 27 keys; return one for each"),
        (Raises, r"problem .* raised KeyError in describe \(test_parts.py, line \d+\): 'x'"),
        (lambda: told(lambda p: Parts(p.starts, p.keys, p.counts, p.costs * 2)), "the parts of candidate 0 of .* add"),
    ],
)
def test_each_mistake_is_one_sentence(problem, complaint):
    assert [bool(re.search(complaint, text)) for text in complaints(problem) if "source" not in text] == [True]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        (lambda keys: keys % np.uint64(2), r"the part 000000000000000\d costs .* and cost .* before; its key must"),
        (lambda keys: keys + np.uint64(1), "does not describe it as a part of these candidates"),
    ],
)
def test_a_run_stops_at_a_key_that_is_wrong(changed, complaint, tmp_path):
    class Wrong(Knapsack):
        def evaluate_parts(self, configs):
            found = super().evaluate_parts(configs)
            return replace(found, parts=replace(found.parts, keys=changed(found.parts.keys)))

        def structure(self):
            return None if "key must" in complaint else super().structure()

    with pytest.raises(UserError, match=complaint):
        bbo_suite.run("graybox", Wrong, budget=60, study="s", results=tmp_path, quiet=True, jobs=1)


@pytest.mark.parametrize(
    ("problem", "complaint"),
    [
        (Asks, "it evaluates candidates in order to describe their parts"),
        (Remembers, "the features that it describes change once candidates were evaluated"),
        (Collides, "the part 000000000000000[01] costs "),
    ],
)
def test_check_says_what_is_wrong_with_parts(problem, complaint):
    assert any(re.search(complaint, text) for text in complaints(problem))


def test_equal_parts_of_a_candidate_are_merged_and_sums_stay():
    numbers = np.array([5, 2, 5, 2], np.uint64), np.array([1.0, 1, 2, 1]), np.array([3.0, 1, 6, 1])
    merged = Parts(np.array([0, 3, 4]), *numbers).merged()
    assert merged.keys.tolist() == [2, 5, 2] and merged.counts.tolist() == [1, 3, 1]
    assert merged.costs.tolist() == [1, 5, 1] and merged.sums().tolist() == [16, 1]
    assert concatenated([merged, merged]).sums().tolist() == [16, 1, 16, 1]


def test_a_strategy_that_uses_the_structure_alone_sees_no_parts():
    problem = Knapsack()
    assert problem.task().structure.parts is None
    assert problem.task(bbo_suite.Level.PARTS).structure.parts is problem.parts
    assert evaluate(problem, np.ones((2, 6), np.int8)).parts is None


def test_what_is_described_tells_no_cost(monkeypatch):
    configs = Knapsack().space.sample(5, np.random.default_rng(0))
    before = Knapsack().parts.describe(configs)
    monkeypatch.setattr(Knapsack, "_bags", lambda self, configs: np.random.default_rng(1).random((len(configs), 3)))
    after = Knapsack().parts.describe(configs)
    assert all(np.array_equal(getattr(before, n), getattr(after, n)) for n in ("keys", "counts", "features"))


KEYS = """
import bbo_suite
problem = bbo_suite.problem("tile/rnn")
print(problem.structure().parts.describe(problem.default[None]).keys.sum())
"""


@pytest.mark.slow
def test_keys_are_the_same_in_another_process():
    other = subprocess.run([sys.executable, "-c", KEYS], capture_output=True, text=True, check=True).stdout
    problem = bbo_suite.problem("tile/rnn")
    assert int(other) == problem.structure().parts.describe(problem.default[None]).keys.sum()


def test_keys_of_small_numbers_do_not_collide():
    small = np.arange(64, dtype=np.uint64)
    keys = {mix(np.uint64(mix(a, b)), c) for a in small[:32] for b in small[:32] for c in small[:16]}
    assert len(keys) == 32 * 32 * 16


def test_keys_of_pairs_are_places_in_a_table_of_all_costs():
    sizes, first, second, starts = (np.array(c) for c in ([2, 3], [0, 1, 0, 1], [-1, -1, 1, 0], [0, 2, 5, 11]))
    pairs = PairDecomposition(sizes, first, second, starts, np.zeros((4, 1)), ("zero",))
    described = pairs.describe(np.array([[1, 2], [0, 1]]))
    assert described.keys.tolist() == [1, 4, 5 + 3 + 2, 11 + 4 + 1, 0, 3, 5 + 1, 11 + 2]
    assert described.features[:3].tolist() == [[0, 1, -1], [0, 2, -1], [0, 1, 2]]
    keys, counts, _ = pairs.cursor(np.array([1, 2])).parts(np.array([2]))
    assert (pairs.length, keys, counts) == (17, [10], [1.0])
