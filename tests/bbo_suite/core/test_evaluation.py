import numpy as np
import pytest
from bbo_toys import Toy

import bbo_suite
from bbo_suite import Constraint, Evaluations, Level, Problem, Space, Status, Strategy, UserError
from bbo_suite.core.evaluation import default_value, evaluate
from bbo_suite.core.multipass import Decisions
from bbo_suite.core.task import Capacity, Graph, Structure


class Answering(Problem):
    """Answers with whatever it was made with."""

    id = "toy/answering"

    def __init__(self, answer):
        rule = Constraint((0, 1), lambda rows: rows.sum(axis=1) < 4)
        self.space, self.default, self.answer, self.seen = Space([3, 4, 5], constraints=[rule]), [0, 0, 0], answer, []

    def evaluate(self, configs):
        self.seen.append(configs.copy())
        return self.answer(configs) if callable(self.answer) else self.answer


TWO = np.array([[0, 0, 1], [1, 2, 3]], np.int8)
OK = np.zeros(2, np.int8)


def test_a_valid_result_passes_and_its_time_is_divided_among_candidates():
    answer = evaluate(Answering(Evaluations.of([2, 0.5])), TWO)
    assert answer.values.tolist() == [2, 0.5] and answer.values.dtype == np.float64
    assert answer.status.tolist() == [0, 0] and answer.reasons == {}
    assert answer.seconds.shape == (2,) and (answer.seconds > 0).all() and answer.seconds[0] == answer.seconds[1]


def test_times_that_the_problem_measured_are_kept():
    assert evaluate(Answering(Evaluations(np.ones(2), OK, {}, np.array([3, 4]))), TWO).seconds.tolist() == [3, 4]


def test_failed_candidates_cost_inf_and_keep_their_reason():
    answer = Evaluations([1, np.inf], [Status.OK, Status.TIMEOUT], {1: TimeoutError("10 s")})
    told = evaluate(Answering(answer), TWO)
    assert told.values.tolist() == [1, np.inf] and told.status.tolist() == [0, 4] and told.reasons == {1: "10 s"}
    assert evaluate(Answering(Evaluations.of([np.inf, 1])), TWO).status.tolist() == [Status.RUNTIME_ERROR, 0]


def test_forbidden_candidates_never_reach_the_problem():
    problem = Answering(lambda configs: Evaluations([5.0, np.inf], [0, 3], {1: "crash"}, [7.0, 8.0]))
    rows = np.array([[2, 3, 0], [0, 1, 2], [1, 3, 0], [2, 1, 4]], np.int8)
    told = evaluate(problem, rows)
    assert problem.seen[0].tolist() == [[0, 1, 2], [2, 1, 4]]
    assert told.values.tolist() == [np.inf, 5, np.inf, np.inf]
    assert told.status.tolist() == [Status.FORBIDDEN, 0, Status.FORBIDDEN, Status.RUNTIME_ERROR]
    assert told.reasons == {0: (why := "a known constraint forbids it"), 2: why, 3: "crash"}
    assert told.seconds.tolist() == [0, 7, 0, 8]
    assert evaluate(problem, rows[:1]).status.tolist() == [Status.FORBIDDEN] and len(problem.seen) == 1


def test_a_problem_that_changes_its_rows_does_not_change_those_of_the_caller():
    def spoil(configs):
        configs[:] = 0
        return Evaluations.of(np.ones(len(configs)))

    rows = TWO.copy()
    evaluate(Answering(spoil), rows)
    assert (rows == TWO).all()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.ones((2, 2), np.int8), r"candidates have shape \(2, 2\), not \(n, 3\)"),
        (np.ones((2, 3)), "candidates are float64, not integers"),
        ([[0, 0, 0], [0, 4, 0]], "candidate 1 has index 4, but 'x1' has indices 0 to 3"),
    ],
)
def test_what_is_no_candidate_is_refused_before_the_problem_sees_it(rows, message):
    problem = Answering(Evaluations.of([1.0, 1.0]))
    with pytest.raises(ValueError, match=message):
        evaluate(problem, rows)
    assert not problem.seen


def test_a_problem_gets_the_smallest_integers():
    problem = Answering(Evaluations.of([1.0, 1.0]))
    evaluate(problem, [[0, 0, 1], [1, 2, 0]])
    assert problem.seen[0].tolist() == [[0, 0, 1], [1, 2, 0]] and problem.seen[0].dtype == np.int8


def failing(error):
    def answer(configs):
        raise error

    return answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Evaluations.of([1, np.nan]), r"value of candidate \[1, 2, 3\] is nan; a cost must be 0 or more"),
        (Evaluations.of([-1, 1]), r"value of candidate \[0, 0, 1\] is -1.0"),
        (Evaluations.of([1, -np.inf]), r"is -inf; a cost must be 0 or more"),
        (Evaluations.of([1]), r"values of shape \(1,\) for 2 candidates; return one for each"),
        (Evaluations(np.ones(2), OK[:1]), r"status of shape \(1,\)"),
        (Evaluations(np.ones(2), OK, {}, np.ones(3)), r"seconds of shape \(3,\)"),
        (Evaluations(np.ones(2), OK, {}, np.array([1, np.nan])), "seconds that are negative or not finite"),
        (Evaluations(np.ones(2), OK + 9), "status 9; use bbo_suite.Status"),
        (Evaluations(np.ones(2), ["ok", "ok"]), "status ok; use bbo_suite.Status"),
        (Evaluations(np.array([1, np.inf]), OK), "a value and its status disagree: the value must be finite"),
        (Evaluations(["a", "b"], OK), "could not convert string"),
        (Evaluations(np.ones(2), OK, ["a", "b"]), "reasons as list; use a dict"),
        (Evaluations(np.ones(2), OK, {"first": "a"}), "invalid literal"),
        (np.ones(2), "evaluate returned ndarray; return Evaluations.of"),
        (None, "evaluate returned NoneType"),
        (
            failing(ZeroDivisionError("division by zero")),
            r"raised ZeroDivisionError in evaluate \(test_evaluation.py, ",
        ),
    ],
)
def test_an_invalid_result_names_the_problem_and_the_remedy(answer, message):
    with pytest.raises(UserError, match=message) as caught:
        evaluate(Answering(answer), TWO)
    assert "problem toy/answering" in str(caught.value)


def test_the_cost_of_the_default():
    problem = Answering(lambda configs: Evaluations.of(configs.sum(axis=1) + 0.5))
    assert default_value(problem) == 0.5
    problem.default = np.array([1, 2, 4], np.int64)
    assert default_value(problem) == 7.5 and problem.seen[-1].tolist() == [[1, 2, 4]]


@pytest.mark.parametrize(
    ("default", "message"),
    [
        ([0, 0], r"is not a candidate: candidates have shape \(1, 2\)"),
        ([0, 0, 9], "is not a candidate: candidate 0 has index 9"),
        ([0.0, 0.0, 0.0], "is not a candidate: candidates are float64"),
        ([[0, 0, 0]], "is not a candidate"),
        (None, "is not a candidate"),
        ([2, 3, 0], r"fails \(forbidden: a known constraint forbids it\); a default must work"),
        ([0, 0, 4], r"fails \(timeout: too slow\)"),
    ],
)
def test_a_default_that_fails_is_refused(default, message):
    problem = Answering(
        lambda rows: Evaluations([np.inf], [4], {0: "too slow"}) if rows[0, 2] else Evaluations.of([1.0])
    )
    problem.default = default
    with pytest.raises(UserError, match=message):
        default_value(problem)


def test_a_task_holds_a_copy_of_the_default_in_the_type_of_the_space():
    problem = Answering(None)
    problem.default = np.zeros(3, np.int8)
    task = problem.task()
    with pytest.raises(ValueError, match="read-only"):
        task.default[:] = 2
    problem.default[:] = 1
    assert task.default.tolist() == [0, 0, 0]
    assert task.default.dtype == np.int8 and not task.default.flags.writeable


def arrays_of(thing):
    """Yield the arrays that something holds, also within tuples and objects."""
    if isinstance(thing, np.ndarray):
        yield thing
    for each in thing if isinstance(thing, tuple) else getattr(thing, "__dict__", {}).values():
        if type(each).__module__.startswith("bbo_suite") or isinstance(each, tuple | np.ndarray):
            yield from arrays_of(each)


def test_a_strategy_can_write_into_no_array_that_others_see():
    problem, n = Answering(None), np.zeros(4, int)
    graph = Graph(np.zeros((2, 1), np.float32), ("f",), np.zeros((1, 2), np.int32))
    capacity = Capacity(n, n, n[:3], n[:3], 9)
    found = Structure(n, n[:0].astype(np.int32), np.zeros((3, 1), np.float32), ("f",), graph, n, n, capacity=capacity)
    problem.structure = lambda: found
    task = problem.task(Level.PARTS)
    arrays = list(arrays_of(task))
    assert len(arrays) == 20 and not any(array.flags.writeable for array in arrays)
    decided = Decisions(*(np.zeros(2, int) for _ in range(5)))
    assert not any(array.flags.writeable for array in arrays_of(decided))


class Meddler(Strategy):
    """Writes into what it was given."""

    def ask(self, n):
        return np.repeat(self.task.default[None], n, axis=0)

    def tell(self, configs, values):
        self.task.space.sizes[:] = 1


def test_a_strategy_that_writes_into_the_space_fails_alone(tmp_path):
    problem = Toy()
    with pytest.raises(UserError, match=r"strategy meddler raised ValueError in tell .*read-only"):
        bbo_suite.run([Meddler, "random"], problem, budget=20, batch=5, study="s", results=tmp_path, quiet=True, jobs=1)
    alone = bbo_suite.run("random", Toy(), budget=20, batch=5, study="t", results=tmp_path, quiet=True, jobs=1)
    rows = [(tmp_path / name / "toy--instance__random__0" / "rows.csv").read_text() for name in ("s", "t")]
    digests = [[line.split(",")[1] for line in text.splitlines()] for text in rows]
    assert digests[0] == digests[1] and len(digests[0]) == 21 and alone[0]["complete"]
