import json
import subprocess
import sys
import time

import numpy as np
import pytest
from bbo_toys import Climber, Toy, contents, environment, perform, rows_of
from hypothesis import given, settings
from hypothesis import strategies as st

import bbo_suite
from bbo_suite import Evaluations, Problem, Space, Status, Strategy, UserError
from bbo_suite.store.identity import Run
from bbo_suite.store.rows import read_rows


class Asking(Strategy):
    """Asks for whatever the class was made with."""

    answer = None

    def ask(self, n):
        return self.answer(n)


def asking(answer):
    return type("Asking", (Asking,), {"answer": lambda self, n: answer(self, n)})


def sample(self, n):
    return self.task.space.sample(n, self.rng)


# Replay


@pytest.mark.slow
def test_a_log_cut_at_any_byte_resumes_to_the_same_rows(tmp_path):
    class Quick(Toy):
        def fingerprint(self):
            return "0"

    problem = Quick()
    assert perform(tmp_path, problem, budget=5, batch=2)
    data, rows = (tmp_path / "rows.csv").read_bytes(), rows_of(tmp_path)
    for cut in range(len(data) + 1):
        if cut % 2:  # half of the times as if the crash came before the run's end, half after it
            (tmp_path / "end.json").unlink()
        (tmp_path / "rows.csv").write_bytes(data[:cut])
        assert perform(tmp_path, problem, budget=5, batch=2)
        assert rows_of(tmp_path) == rows
        whole = data[: data.rfind(b"\n", 0, cut) + 1]
        assert (tmp_path / "rows.csv").read_bytes().startswith(whole)  # what was stored stands as it was


KILLED = """
import sys, time, pathlib
sys.path.insert(0, sys.argv[1])
import toys
evaluate = toys.Toy.evaluate
def slowly(self, configs):
    time.sleep(0.008 * len(configs))
    return evaluate(self, configs)
toys.Toy.evaluate = slowly
toys.perform(pathlib.Path(sys.argv[2]), budget=120, batch=5)
"""


LATE = [(0, 0.0), (0, 0.005), (5, 0.01), (55, 0.03)]


@pytest.mark.parametrize(
    ("rows", "later"), [(30, 0.0), *(pytest.param(*late, marks=pytest.mark.slow) for late in LATE)]
)
def test_a_run_that_was_killed_resumes_to_the_same_rows(tmp_path, rows, later, request):
    perform(tmp_path / "whole", budget=120, batch=5)
    command = [sys.executable, "-c", KILLED, str(request.path.parents[1]), str(tmp_path / "killed")]
    log = tmp_path / "killed" / "rows.csv"
    with subprocess.Popen(command, env=environment()) as process:
        while not log.exists() or log.read_bytes().count(b"\n") < rows:
            assert process.poll() is None
            time.sleep(0.002)
        time.sleep(later)
        process.kill()
    assert rows - 1 <= len(read_rows(tmp_path / "killed")) < 120
    assert perform(tmp_path / "killed", budget=120, batch=5)
    assert rows_of(tmp_path / "killed") == rows_of(tmp_path / "whole")


def test_stored_candidates_are_not_evaluated_again(tmp_path):
    counted = []

    class Counting(Toy):
        def evaluate(self, configs):
            counted.append(len(configs))
            return super().evaluate(configs)

    problem = Counting()
    asked = iter([False, False, True])
    assert not perform(tmp_path, problem, budget=30, batch=6, stopped=lambda: next(asked))
    assert sum(counted) <= 12 and len(rows_of(tmp_path)) == 12
    assert perform(tmp_path, problem, budget=30, batch=6)
    assert sum(counted) <= 30 and len(counted) == 5
    assert perform(tmp_path, problem, budget=30, batch=6) and len(counted) == 5  # complete: nothing is done


@pytest.mark.slow
@settings(max_examples=15)
@given(st.lists(st.integers(0, 4), max_size=5), st.integers(1, 50), st.integers(1, 60))
def test_stopping_anywhere_changes_nothing(tmp_path_factory, stops, budget, batch):
    path, whole = tmp_path_factory.mktemp("stopped"), tmp_path_factory.mktemp("whole")
    for batches in stops:
        asked = iter([False] * batches + [True])
        if perform(path, budget=budget, batch=batch, stopped=lambda asked=asked: next(asked)):
            break
        assert len(rows_of(path) if (path / "rows.csv").stat().st_size else []) >= min(batches * batch, budget) - batch
    assert perform(path, budget=budget, batch=batch) and perform(whole, budget=budget, batch=batch)
    assert rows_of(path) == rows_of(whole) and len(rows_of(path)) == budget


def test_a_strategy_that_proposes_something_else_is_refused(tmp_path):
    perform(tmp_path, strategy=asking(sample), budget=20)
    (tmp_path / "end.json").unlink()
    before = contents(tmp_path)
    other = asking(lambda self, n: sample(self, n)[::-1])
    with pytest.raises(UserError, match=r"another candidate for evaluation 1; .* draws random numbers from elsewhere"):
        perform(tmp_path, strategy=other, budget=20)
    late = asking(lambda self, n: sample(self, n) if self.rng.random() >= 0 else None)
    with pytest.raises(UserError, match=r"another candidate for evaluation \d+"):
        perform(tmp_path, strategy=late, budget=20)
    none = asking(lambda self, n: np.zeros((0, len(self.task.space)), int))
    with pytest.raises(UserError, match="its first batch is empty"):
        perform(tmp_path, strategy=none, budget=20)
    assert contents(tmp_path) == before


def test_a_strategy_that_fails_on_replay_leaves_the_log(tmp_path):
    perform(tmp_path, strategy=asking(sample), budget=20)
    (tmp_path / "end.json").unlink()
    before = contents(tmp_path)
    with pytest.raises(UserError, match="strategy toy raised KeyError in ask"):
        perform(tmp_path, strategy=asking(lambda self, n: {}[n]), budget=20)
    assert contents(tmp_path) == before
    assert "KeyError" in (tmp_path / "error.txt").read_text()
    assert perform(tmp_path, strategy=asking(sample), budget=20)
    assert not (tmp_path / "error.txt").exists()  # repaired


# What strategies may and may not return


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda self, n: sample(self, n + 1), "returned 5 candidates when asked for 4"),
        (lambda self, n: sample(self, n)[0], r"shape \(7,\), not \(n, 7\)"),
        (lambda self, n: sample(self, n)[:, 1:], r"shape \(4, 6\), not \(n, 7\)"),
        (lambda self, n: sample(self, n) * 1.0, "float64, not integers"),
        (
            lambda self, n: sample(self, n) + np.eye(n, 7, dtype=int) * 9,
            "candidate 0 has index .*'layout' has indices 0",
        ),
        (lambda self, n: -1 - sample(self, n).astype(int), "candidate 0 has index -"),
        (lambda self, n: None, r"shape \(\)"),
    ],
)
def test_a_strategy_that_breaks_its_contract_is_named(tmp_path, answer, message):
    with pytest.raises(UserError, match=f"contract in ask: .*{message}"):
        perform(tmp_path, strategy=asking(answer), budget=20, batch=4)
    assert not (tmp_path / "rows.csv").read_bytes()


def test_fewer_candidates_than_asked_for_are_fine_and_the_budget_is_still_spent(tmp_path):
    wanted = []
    few = asking(lambda self, n: (wanted.append(n), sample(self, max(1, n // 2)))[1])
    assert perform(tmp_path, strategy=few, budget=23, batch=8)
    assert len(rows_of(tmp_path)) == 23
    assert wanted == [8, 8, 8, 8, 7, 4, 2, 1]


def test_no_candidates_end_the_run_as_covered(tmp_path):
    left = iter([3, 2, 0])
    lists = asking(lambda self, n: sample(self, next(left)).tolist() or np.zeros((0, 7), int))
    assert perform(tmp_path, strategy=lists, budget=20)
    assert len(rows_of(tmp_path)) == 5
    assert json.loads((tmp_path / "end.json").read_text()).items() >= {"reason": "covered", "evaluations": 5}.items()


def test_no_candidate_at_all_breaks_the_contract(tmp_path):
    with pytest.raises(UserError, match="broke its contract in ask: its first batch is empty"):
        perform(tmp_path, strategy=asking(lambda self, n: np.zeros((0, 7), int)), budget=20)
    assert not (tmp_path / "end.json").exists()


@pytest.mark.parametrize("step", ["constructor", "ask", "tell"])
def test_a_strategy_that_raises_is_named_with_the_step_and_the_line(tmp_path, step):
    class Raising(Climber):
        def __init__(self, task, budget, rng, options):
            super().__init__(task, budget, rng, options)
            self.fail("constructor")

        def fail(self, here):
            if step == here:
                raise RuntimeError("broken")

        def ask(self, n):
            self.fail("ask")
            return super().ask(n)

        def tell(self, configs, values):
            self.fail("tell")

    with pytest.raises(UserError, match=rf"raised RuntimeError in .*{step} \(test_loop.py, line \d+\)"):
        perform(tmp_path, strategy=Raising)
    assert "Traceback" in (tmp_path / "error.txt").read_text()


def test_the_last_batch_is_not_told(tmp_path):
    told = []
    silent = type(
        "Silent", (Asking,), {"answer": sample, "tell": lambda self, configs, values: told.append(len(values))}
    )
    perform(tmp_path, strategy=silent, budget=20, batch=6)
    assert told == [6, 6, 6]


def test_a_structure_that_raises_is_the_problems_fault(tmp_path):
    class Broken(Toy):
        def structure(self):
            raise IndexError("no edge")

    informed = type("Informed", (Climber,), {"level": bbo_suite.Level.STRUCTURE})
    with pytest.raises(UserError, match="toy/small raised IndexError in structure"):
        perform(tmp_path / "informed", Broken(), informed)
    assert perform(tmp_path / "blind", Broken(), Climber)  # which never asks for it


# What is stored and told


def test_failed_and_forbidden_candidates_are_told_and_stored(tmp_path):
    told = {}

    class Learning(Asking):
        def answer(self, n):
            return np.array(
                [[0, 0, 0, 1, 2, 0, 0], [2, 0, 0, 1, 2, 0, 1], [2, 3, 0, 1, 2, 0, 0], [0, 0, 1, 1, 1, 0, 0]]
            )

        def tell(self, configs, values):
            told.update(zip(map(tuple, configs.tolist()), values.tolist(), strict=True))

    perform(tmp_path, strategy=Learning, budget=8, batch=4)
    assert np.isfinite(list(told.values())).tolist() == [True, False, False, False]
    rows = read_rows(tmp_path)
    assert [row.status for row in rows[:4]] == [Status.OK, Status.COMPILE_ERROR, Status.FORBIDDEN, Status.FORBIDDEN]
    assert (
        rows[1].reason == 'tile "blocked", línea 3: no such thing' and rows[2].reason == "a known constraint forbids it"
    )
    assert [row.value for row in rows[:4]] == list(told.values())
    assert rows[2].evaluation_seconds == 0


def test_improvements_keep_their_configuration_and_keep_all_keeps_every_one(tmp_path):
    perform(tmp_path / "some")
    perform(tmp_path / "all", keep_all=True)
    some, every = read_rows(tmp_path / "some"), read_rows(tmp_path / "all")
    space, best = Toy().space, np.inf
    for one, full in zip(some, every, strict=True):
        assert one.config == (full.config if one.value < best else "")
        assert space.digests([space.unpack(full.config)]) == [one.digest] == [full.digest]
        best = min(best, one.value)
    assert sum(bool(row.config) for row in some) > 2


def test_the_time_of_the_strategy_and_of_the_problem_are_apart(tmp_path):
    class SlowProblem(Toy):
        def evaluate(self, configs):
            time.sleep(0.01)
            return super().evaluate(configs)

        def structure(self):
            time.sleep(0.05)

    class SlowStrategy(Climber):
        level = bbo_suite.Level.STRUCTURE

        def ask(self, n):
            time.sleep(0.02)
            return super().ask(n)

        def tell(self, configs, values):
            time.sleep(0.03)

    def seconds(path, problem, strategy):
        perform(path, problem, strategy, budget=9, batch=3)
        rows = read_rows(path)
        batches = range(0, 9, 3)
        return (
            [sum(r.strategy_seconds for r in rows[i : i + 3]) for i in batches],
            [sum(r.evaluation_seconds for r in rows[i : i + 3]) for i in batches],
        )

    strategy, problem = seconds(
        tmp_path / "problem", SlowProblem(), type("Informed", (Climber,), {"level": bbo_suite.Level.STRUCTURE})
    )
    assert min(problem) >= 0.01 and sum(strategy) < 0.04  # the structure is the problem's time
    strategy, problem = seconds(tmp_path / "strategy", Toy(), SlowStrategy)
    assert strategy[0] >= 0.02 and min(strategy[1:]) >= 0.05 and sum(problem) < 0.02  # tell counts with the next ask


# Determinism


def test_equal_runs_give_equal_rows_and_others_do_not(tmp_path):
    def rows(name, **settings):
        perform(tmp_path / name, **settings)
        return rows_of(tmp_path / name)

    base = rows("base")
    assert rows("same") == base
    for name, settings_ in {"seed": {"seed": 1}, "budget": {"budget": 41}, "batch": {"batch": 8}}.items():
        assert rows(name, **settings_)[:7] != base[:7]


def test_the_generator_is_the_same_on_every_machine():
    run = Run("p/i", "f" * 16, "s", {"x": 1, "y": (2, 3)}, 0, 10, 5)
    assert run.generator().bit_generator.random_raw(2).tolist() == [17433252750695689983, 7158091197212547723]


def test_global_random_state_is_neither_used_nor_changed(tmp_path):
    import random

    for name, seed in (("one", 1), ("two", 2)):
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        before = np.random.get_state()[1].copy(), np.random.get_state()[2], random.getstate()  # noqa: NPY002
        perform(tmp_path / name)
        state = np.random.get_state()  # noqa: NPY002
        assert (state[1] == before[0]).all() and state[2] == before[1] and random.getstate() == before[2]
    assert rows_of(tmp_path / "one") == rows_of(tmp_path / "two")


def test_a_problem_that_changes_its_rows_or_a_strategy_that_reuses_them_changes_nothing(tmp_path):
    class Spoiling(Problem):
        id = "toy/spoiling"

        def __init__(self):
            self.space, self.default, self.seen = Space([2] * 8), np.zeros(8, np.int8), []

        def evaluate(self, configs):
            self.seen.append(configs.copy())
            values = Evaluations.of(configs.sum(axis=1) + 1.0)
            configs[:] = 0
            return values

    class Reusing(Strategy):
        def ask(self, n):
            self.rows = self.rng.integers(0, 2, (n, 8), dtype=np.int8)
            return self.rows

        def tell(self, configs, values):
            assert (configs.sum(axis=1) + 1 == values).all()
            configs[:] = 1

    problem = Spoiling()
    perform(tmp_path, problem, Reusing)
    rows = read_rows(tmp_path)
    digests = [digest for batch in problem.seen for digest in problem.space.digests(batch)]
    assert digests == [row.digest for row in rows]


def test_a_slow_batch_is_stored_piece_by_piece_and_stopped_in_between(tmp_path):
    class Timed(Toy):
        timed = True

        def evaluate(self, configs):
            slices.append(len(configs))
            time.sleep(pause * len(configs) * (len(slices) > 1))  # the default is known
            return super().evaluate(configs)

    slices, pause = [], 0.15
    assert not perform(tmp_path / "cut", Timed(), stopped=lambda: len(slices) == 2, budget=10, batch=8)
    pause = 0.0
    assert slices == [1, 2] and len(rows_of(tmp_path / "cut")) == 3
    assert perform(tmp_path / "cut", Timed(), budget=10, batch=8) and sum(slices) == 10
    assert perform(tmp_path / "whole", Timed(), budget=10, batch=8)
    assert rows_of(tmp_path / "cut") == rows_of(tmp_path / "whole")
