import numpy as np
import pytest

from bbo_suite import Constraint, Evaluations, Problem, Space, Status, UserError
from bbo_suite.core.evaluation import default_value, evaluate


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
