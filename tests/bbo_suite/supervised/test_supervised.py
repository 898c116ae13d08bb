"""A child that aborts, hangs, needs too much memory, prints rubbish or is killed costs one candidate at most."""

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bbo_suite import UserError
from bbo_suite.supervised import Service, Workers

HERE = Path(__file__).parent


@pytest.fixture
def make():
    made = []

    def workers(target="supervised_targets:echo", *arguments, **limits):
        made.append(Workers(Service(target, arguments, **limits)))
        return made[-1]

    yield workers
    for each in made:
        each.close()


def alive(pid):
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def children(others=()):
    import supervised_targets

    return supervised_targets.children(others)


def gone(pids):
    for _ in range(100):
        if not any(map(alive, pids)):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("count", [1, 3])
def test_answers_come_in_order_from_any_number_of_children(make, count):
    workers = make("supervised_targets:echo", 2)
    assert [answer.value for answer in workers.map(range(50), count)] == list(range(0, 100, 2))
    assert workers.map([]) == []


def test_no_more_children_than_wanted(make):
    workers = make("supervised_targets:pid")
    workers.map([0.01] * 6, 3)
    assert len({answer.value for answer in workers.map([0] * 6, 1)}) == 1


def test_several_children_share_a_batch(make):
    answers = make("supervised_targets:pid").map([0.05] * 8, 2)
    assert len({answer.value for answer in answers}) == 2
    assert min(answer.seconds for answer in answers) > 0.03


@pytest.mark.slow
def test_a_death_costs_one_candidate_and_says_why(make):
    words = "opt: Loops.cpp:99: Assertion `L->isLCSSAForm()' failed."
    answers = make().map([1, ("abort", words), 2, ("exit", 0), 3], 2)
    assert [answer.value for answer in answers] == [1, None, 2, None, 3]
    assert [answer.failure for answer in answers] == ["", "died", "", "died", ""]
    assert answers[1].reason == f"the process died of SIGABRT: {words}"
    assert answers[3].reason == "the process ended without an answer (exit code 0)"


@pytest.mark.parametrize(("times", "failure"), [(1, ""), (3, ""), (4, "died")])
def test_a_signal_counts_once_it_has_ended_three_new_children(make, tmp_path, times, failure):
    """The first to die has answered a request before, so it does not count."""
    answers = make().map([5, ("die", (times, str(tmp_path / "deaths"))), 6])
    assert [answer.failure for answer in answers] == ["", failure, ""]
    assert (tmp_path / "deaths").stat().st_size == times + (not failure)
    assert answers[1].reason == ("the process died of SIGKILL" if failure else "")


def test_an_exit_of_a_new_child_counts_at_once(make):
    workers = make()
    assert workers.map([("exit", 0)])[0].failure == "died"
    assert workers.map([3])[0].value == 3


@pytest.mark.slow
def test_after_a_death_only_new_children_try_again(make, tmp_path):
    workers = make()
    workers.map([("sleep", 0.1)] * 2, 2)
    answers = workers.map([("sleep", 0.3), ("die", (4, str(tmp_path / "deaths"))), 6, 7], 2)
    assert [answer.failure for answer in answers] == ["", "died", "", ""]
    assert (tmp_path / "deaths").stat().st_size == 4


@pytest.mark.slow
def test_children_killed_at_random_change_no_answer(make):
    workers, others = make("supervised_targets:echo", 3), children()

    def kill():
        for child in children(others)[:1]:
            os.kill(child, signal.SIGKILL)

    for milliseconds in range(0, 60, 5):
        killer = threading.Timer(milliseconds / 1000, kill)
        killer.start()
        answers = workers.map([*range(5), ("sleep", 0.03)], 2)
        killer.join()
        assert [answer.value for answer in answers] == [0, 3, 6, 9, 12, 0.03]


@pytest.mark.slow
def test_a_hang_is_ended_and_reported(make):
    answers = make(seconds=0.3).map([("sleep", 60), 4])
    assert [(answer.failure, answer.value) for answer in answers] == [("timeout", None), ("", 4)]
    assert answers[0].reason == "took more than 0.3 s"


@pytest.mark.slow
def test_a_stage_has_its_own_time_and_a_death_names_it(make):
    slow, fast, dead = make(seconds=30).map([("stage", 60), ("stage", 0), ("die in stage", 0)])
    assert (slow.failure, slow.stage, slow.reason) == (
        "timeout",
        "run the result",
        "took more than 0.3 s to run the result",
    )
    assert (fast.failure, fast.stage) == ("", "run the result")
    assert (dead.failure, dead.stage) == ("died", "run the result")


def test_memory_is_bounded(make):
    answers = make(memory=1 << 30).map([("eat", 4 << 30), ("eat", 1 << 20)])
    assert [(answer.failure, answer.reason) for answer in answers] == [("raised", "out of memory"), ("", "")]


@pytest.mark.slow
def test_a_child_that_leaks_ends_before_it_has_no_memory_left(make):
    workers = make(memory=1 << 30)
    requests = [("eat", (60 << 20) + number) for number in range(30)]  # two times what it may have
    assert [answer.value for answer in workers.map(requests)] == [size for _, size in requests]


def test_memory_is_bounded_from_the_start(make):
    with pytest.raises(UserError, match="cannot start: out of memory"):
        make("supervised_targets:hungry", memory=1 << 30).map([1])


@pytest.mark.slow
def test_rubbish_on_standard_output_is_not_an_answer(make):
    answers = make().map([("print", 2000), 7, ("abort", "the end"), ("print", 1)])
    assert [answer.failure for answer in answers] == ["", "", "died", ""]
    assert answers[2].reason.endswith("SIGABRT: the end")  # and not what was printed for another candidate


def test_an_exception_is_an_answer(make):
    workers, others = make(), children()
    (answer,) = workers.map([("raise", "cannot select: node 7")])
    assert (answer.failure, answer.reason) == ("raised", "cannot select: node 7")
    child = children(others)
    assert workers.map([1])[0].value == 1 and children(others) == child and len(child) == 1


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("supervised_targets:unfit", "cannot start: no such program"),
        ("supervised_targets:dies", r"cannot start: its process ended without an answer \(exit code 7\)"),
        ("no_such_module:f", "cannot start: ModuleNotFoundError: No module named 'no_such_module'"),
    ],
)
def test_a_service_that_cannot_start_is_a_clear_error(make, target, words):
    with pytest.raises(UserError, match=words):
        make(target).map([1])


@pytest.mark.slow
def test_a_start_that_takes_too_long_is_not_tried_again(make, tmp_path):
    workers = make("supervised_targets:slow", str(tmp_path / "starts"), start_seconds=0.5)
    with pytest.raises(UserError, match=r"more than 0\.5 s"):
        workers.map([1])
    assert not (tmp_path / "starts").exists() or (tmp_path / "starts").stat().st_size == 1


def test_close_ends_the_children_and_a_later_batch_starts_new_ones(make):
    workers = make("supervised_targets:pid")
    first = workers.map([0])[0].value
    workers.close()
    assert gone([first])
    assert workers.map([0])[0].value != first


PARENT = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells switch off in the background
sys.path.insert(0, {here!r})
from bbo_suite.supervised import Service, Workers
workers = Workers(Service("supervised_targets:{target}"))
pids = set()
while len(pids) < 2:  # on a busy machine the first child may be done with both before the second has started
    pids |= {{answer.value for answer in workers.map([0.2, 0.2], 2)}}
print(*pids, flush=True)
{then}
"""


SOFTER = (signal.SIGINT, signal.SIGTERM)


def parent(target, then):
    code = PARENT.format(here=str(HERE), target=target, then=then)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True)
    return process, [int(word) for word in process.stdout.readline().split()]


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGKILL, *(pytest.param(s, marks=pytest.mark.slow) for s in SOFTER)])
@pytest.mark.parametrize("then", [pytest.param("time.sleep(60)", marks=pytest.mark.slow), "workers.map([60, 60], 2)"])
def test_children_end_with_their_parent(ending, then):
    process, children = parent("pid", then)
    time.sleep(0.3)
    assert len(children) == 2 and all(map(alive, children))
    process.send_signal(ending)
    process.wait(10)
    assert gone(children)


@pytest.mark.slow
def test_children_end_when_the_parent_ends_normally():
    process, children = parent("pid", "")
    assert process.wait(20) == 0
    assert gone(children)


@pytest.mark.slow
def test_ctrl_c_of_the_terminal_does_not_reach_the_children():
    process, children = parent("pid", "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)")
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.3)
    assert all(map(alive, children))
    process.kill()
    assert gone(children)


def test_a_child_starts_without_the_suite_and_its_libraries():
    script = importlib.util.find_spec("bbo_suite.supervised.child").origin
    code = f"import runpy, sys; runpy.run_path({script!r}); print('numpy' in sys.modules, 'bbo_suite' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
