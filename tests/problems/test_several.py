"""One candidate for several programs: costs, parts, and what fits together."""

from pathlib import Path

import numpy as np
import pytest

import bbo_problems
from bbo_problems.several import SeveralProblem
from bbo_suite import Evaluations, Problem, Space, Status, Structure, UserError, choice, product
from bbo_suite.core.constraint import Constraint, listed
from bbo_suite.core.evaluation import evaluate
from bbo_suite.registry import Registry

PROGRAM = Path(bbo_problems.__file__).parent / "programs_c" / "lz.c"


class Weighted(Problem):
    """The weighted sum of three digits; it fails where the first is 2, if it is strict."""

    def __init__(self, name, weights=(1.0, 1.0, 1.0), strict=False, space=None, noisy=False):
        self.id, self.weights, self.strict, self.noisy = name, np.array(weights), strict, noisy
        self.space = space or product(*(choice(f"digit {i}", (0, 1, 2)) for i in range(3)))
        self.default = self.space.components[0].rows[0] if self.space.components else np.zeros(3, int)

    def evaluate(self, configs):
        values = 2 + configs @ self.weights
        failed = self.strict & (configs[:, 0] == 2)
        status = np.where(failed, Status.COMPILE_ERROR, Status.OK).astype(np.int8)
        return Evaluations(np.where(failed, np.inf, values), status, dict.fromkeys(np.flatnonzero(failed), "no 2"))


def test_the_cost_is_the_geometric_mean_over_the_defaults_and_the_parts_are_the_programs():
    problem = SeveralProblem([Weighted("a"), Weighted("b", (4.0, 0.0, 1.0))])
    problem.id = "several:a+b"
    configs = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 1]], np.int8)
    result = evaluate(problem, configs, with_parts=True)
    assert np.allclose(result.values, [1, np.sqrt(1.5 * 3), np.sqrt(2.5 * 1.5)], rtol=1e-15)
    assert np.array_equal(result.values, evaluate(problem, configs).values)
    assert sorted(result.parts.costs[2:4]) == [1.5, 3.0] and result.parts.starts.tolist() == [0, 2, 4, 6]
    assert len(set(result.parts.keys.tolist())) == 6


def test_a_baseline_that_all_programs_have_is_one_of_them_together():
    programs = [Weighted("a"), Weighted("b")]
    programs[0].baselines = lambda: {"-O2": 8.0, "-O3": 1.0, "only here": 5.0}  # the defaults cost 2
    programs[1].baselines = lambda: {"-O2": 2.0, "-O3": np.inf}
    assert SeveralProblem(programs).baselines() == {"-O2": 2.0}


def test_a_candidate_that_fails_on_one_program_fails_and_the_reason_names_it():
    problem = SeveralProblem([Weighted("a"), Weighted("b", strict=True)])
    problem.id = "several:a+b"
    result = evaluate(problem, np.array([[2, 0, 0], [1, 0, 0]], np.int8), with_parts=True)
    assert result.status.tolist() == [Status.COMPILE_ERROR, Status.OK] and result.reasons == {0: "b: no 2"}
    assert sorted(result.parts.costs[:2]) == [2.0, np.inf]


def declared(neighbours, sizes=(1.0, 2.0, 3.0), names=("size", "depth")):
    starts = np.cumsum([0, *map(len, neighbours)])
    features = np.column_stack([sizes, np.ones(3)]).astype(np.float32)
    return Structure(starts, np.array([i for row in neighbours for i in row], np.int32), features, names)


PAIR, CHAIN = [[1], [0], []], [[1], [0, 2], [1]]


@pytest.mark.parametrize(
    ("declarations", "features"),
    [
        ((declared(PAIR), declared(PAIR)), ("size", "depth")),
        ((declared(PAIR), declared(PAIR, sizes=(1.0, 2.0, 4.0))), ("depth",)),  # numbers of one program
        ((declared(PAIR), declared(PAIR, names=("size", "width"))), ("size",)),
        ((declared(PAIR), declared(CHAIN)), None),
        ((declared(PAIR), None), None),
        ((None, None), None),
    ],
)
def test_interactions_and_features_that_all_programs_have_are_passed_on(declarations, features):
    programs = [Weighted("a"), Weighted("b")]
    for program, declaration in zip(programs, declarations, strict=True):
        program.structure = lambda declaration=declaration: declaration
    structure = SeveralProblem(programs).structure()
    assert (structure and structure.feature_names) == features
    if structure is not None:
        assert structure.starts.tolist() == [0, 1, 2, 2] and structure.neighbours.tolist() == [1, 0]
        assert structure.features.shape == (3, len(features)) and structure.parts is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("several:ordering/small-a", r"needs two programs or more; write several:llvm/tree\+llvm/lexer"),
        ("several:ordering/small-a+ordering/small-a", "names ordering/small-a twice; leave"),
        (f"several:gcc/lz+gcc:{PROGRAM}", r"names gcc:.*lz\.c twice, as gcc/lz, too"),
        ("several:llvm/lz+llvm/lz@instructions", "names llvm/lz@instructions twice, as llvm/lz, too"),
        ("several:xla-passes/gpt2-l1+xla-passes/gpt2-l1@operations", "twice, as xla-passes/gpt2-l1, too"),
        ("several:several:llvm/lz+llvm/tree", "cannot hold another one; name the programs themselves"),
        ("several:llvm/lz+several:llvm/bits+llvm/tree", "cannot hold another one"),
        ("several:llvm:no/*.c+llvm/lz", r"cannot read .*no/\*\.c"),
        ("several:gcc:no+such/a+b.c+gcc/lz", r"cannot read .*no\+such/a\+b\.c"),
        (
            "several:ordering/small-a+ordering/once-50-a",
            r"once-50-a has not the parameters of .*small-a \(50 instead of 12",
        ),
        ("several:ordering/small-a+ordering/small-z", "there is no problem 'ordering/small-z'"),
        ("several:+", "no name before or after a "),
        ("several:ordering/small-a+", "no name before or after a "),
        ("several:nix/*", "there is no family 'nix'"),
        ("several:llvm/zz*", r"'llvm/zz\*' names no program; `list llvm` names them"),
        ("several:llvm/bits+llvm/hash@time", "costs of llvm/hash@time differ from time to time"),
    ],
)
def test_programs_that_do_not_fit_give_one_sentence(name, words):
    with pytest.raises(UserError, match=words):
        Registry().load(name)


def test_files_whose_names_have_a_plus_are_programs(tmp_path):
    file = tmp_path / "c++" / "a+b.c"
    file.parent.mkdir()
    file.write_text("int run(int n) { return n + 1; }")
    problem = Registry().load(f"several:gcc:{file}+gcc/lz+gcc/tree")
    assert [program.id for program in problem.programs] == [f"gcc:{file}", "gcc/lz", "gcc/tree"]


def test_the_example_of_the_documentation_fits_together():
    example = "several:fusion/rnn+fusion/rnn@v4"
    assert f"`{example}`" in (Path(__file__).parents[2] / "docs/live-compilers.md").read_text(encoding="utf-8")
    assert len(Registry().load(example).programs) == 2


def test_a_star_names_the_programs_of_a_family_and_keeps_their_variant():
    problem = Registry().load("several:llvm/b*@bytes")
    assert [program.id for program in problem.programs] == [f"llvm/{n}@bytes" for n in ("base64", "bigint", "bits")]
    assert problem.space.digest() == problem.programs[0].space.digest()
    assert problem.fingerprint() != Registry().load("several:llvm/b*").fingerprint()


def listing(rows):
    return Space([3, 3, 3], constraints=[listed(np.array(rows))], names=["x", "y", "z"])


def test_candidates_that_were_not_recorded_for_all_programs_are_forbidden():
    first, second = ([0, 0, 0], [0, 1, 2], [1, 1, 1]), ([0, 0, 0], [1, 1, 1], [2, 2, 2])
    problem = SeveralProblem([Weighted("a", space=listing(first)), Weighted("b", space=listing(second))])
    assert problem.space.cardinality == 2 and problem.space.name(1) == "y"
    with pytest.raises(UserError, match="default of c"):
        SeveralProblem([Weighted("c", space=listing(first)), Weighted("d", space=listing(second[1:]))])
    with pytest.raises(UserError, match="no candidate"):
        SeveralProblem([Weighted("c", space=listing(first[:2])), Weighted("d", space=listing(second[1:]))])
    even = Constraint((0, 1), lambda rows: rows.sum(axis=1) % 2 == 0)
    tied = Space([3, 3, 3], constraints=[even], names=["x", "y", "z"])
    other = Weighted("d", space=tied)
    other.default = np.zeros(3, int)
    with pytest.raises(UserError, match="constraints of d"):
        SeveralProblem([Weighted("c", space=listing(first)), other])


def test_noise_and_a_default_without_cost_are_refused():
    with pytest.raises(UserError, match="costs of b differ"):
        SeveralProblem([Weighted("a"), Weighted("b", noisy=True)])
    free = Weighted("b")
    free.evaluate = lambda configs: Evaluations.of(configs.sum(axis=1))
    with pytest.raises(UserError, match="default of b costs 0"):
        SeveralProblem([Weighted("a"), free]).evaluate(np.zeros((1, 3), np.int8))
