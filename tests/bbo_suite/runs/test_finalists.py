import json
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from bbo_toys import Climber, Toy, contents, perform, rows_of

from bbo_suite import Evaluations, UserError
from bbo_suite.core.problem import SAME_CODE
from bbo_suite.runs.loop import MEASUREMENTS, MOST
from bbo_suite.store.folders import END, REMEASURED
from bbo_suite.store.remeasured import ROUNDS, Pair, PairLog, finalists, is_remeasured
from bbo_suite.store.results import summarise
from bbo_suite.store.rows import read_rows
from bbo_suite.store.stored_run import open_run, readable


class Noisy(Toy):
    """The toy with noise of up to 30 %, which follows from the candidate and how often it was measured before."""

    noisy = True

    def __init__(self, instance="small"):
        super().__init__(instance)
        self.calls, self._repeats = 0, Counter()

    def fingerprint(self):
        return "noisy"

    def evaluate(self, configs):
        self.calls += len(configs)
        exact = super().evaluate(configs)
        noise = [self._noise(tuple(row)) for row in configs.tolist()]
        return Evaluations(exact.values * noise, exact.status, exact.reasons)

    def _noise(self, row):
        self._repeats[row] += 1
        return np.random.default_rng([*row, self._repeats[row]]).uniform(1, 1.3)


@pytest.fixture
def run(tmp_path):
    assert perform(tmp_path / "s" / "run", Noisy())
    return tmp_path / "s" / "run"


def test_the_best_distinct_candidates_are_measured_again_in_pairs_with_the_default(run):
    rows, last = read_rows(run), finalists(run)
    lowest = {}
    for row in sorted(rows, key=lambda row: (row.value, row.evaluation)):
        lowest.setdefault(row.digest, row)
    assert [each.evaluation for each in last] == [row.evaluation for row in list(lowest.values())[:MOST]]
    space = Noisy().space
    digests = space.digests(np.array([space.unpack(each.config) for each in last]))
    assert digests == [rows[each.evaluation - 1].digest for each in last]
    assert {len(each.speedups) for each in last} == {ROUNDS} and len(set(last[0].speedups)) == ROUNDS
    lines = (run / REMEASURED).read_text().splitlines()[1:]
    assert [int(line.split(",")[0]) for line in lines] == sorted(list(range(1, ROUNDS + 1)) * MOST)


def test_of_candidates_with_the_same_code_one_is_measured_again(tmp_path):
    seen = set()

    class Twins(Noisy):
        """All candidates but the first of each cost have the code of that one."""

        def evaluate(self, configs):
            exact, reasons = Toy.evaluate(self, configs), {}
            values = np.ceil(2 * exact.values) / 2
            for i, value in enumerate(values.tolist()):
                if value in seen:
                    reasons[i] = SAME_CODE
                seen.add(value)
            return Evaluations(values, exact.status, reasons)

    folder = tmp_path / "s" / "twins"
    assert perform(folder, Twins())
    again = [read_rows(folder)[each.evaluation - 1] for each in finalists(folder)]
    assert len(again) > 1 and len({row.value for row in again}) == len(again)


def test_neither_the_rows_nor_the_budget_change(run, tmp_path):
    class Quiet(Noisy):
        noisy = False

    assert perform(tmp_path / "t" / "run", Quiet())
    assert rows_of(tmp_path / "t" / "run") == rows_of(run) and len(read_rows(run)) == 40
    assert not (tmp_path / "t" / "run" / REMEASURED).exists()


def test_the_result_of_a_run_is_the_median_of_its_best_candidate_measured_again(run):
    told, (pick, *_) = summarise(run), finalists(run)
    assert pick.evaluation == open_run(run).best.evaluation
    assert told["speedup"] == np.median(pick.speedups) == open_run(run).speedup and told["remeasured"]
    assert told["search_speedup"] == 4.0 / told["best"]


@pytest.mark.parametrize("pairs", [0, 1, 9, 10, 11, 59])
def test_a_run_that_is_stopped_while_it_measures_again_goes_on_there(run, tmp_path, pairs):
    whole, copy = (run / REMEASURED).read_text(), tmp_path / "u" / "run"
    left = iter([False] * (6 + pairs))  # six batches
    assert not perform(copy, Noisy(), stopped=lambda: next(left, True))
    assert len((copy / REMEASURED).read_text().splitlines()) == 1 + pairs and not (copy / END).exists()
    problem = Noisy()
    assert perform(copy, problem) and problem.calls == MEASUREMENTS - 2 * pairs
    assert [line.split(",")[:2] for line in (copy / REMEASURED).read_text().splitlines()] == [
        line.split(",")[:2] for line in whole.splitlines()
    ]


@pytest.mark.parametrize("cut", [1, 30, 31, 32, 75, 100, 400])
def test_a_file_cut_at_any_byte_is_completed(run, cut):
    before = (run / REMEASURED).read_bytes()
    (run / REMEASURED).write_bytes(before[:cut])
    assert perform(run, Noisy())
    after = (run / REMEASURED).read_bytes()
    kept = before[: before[:cut].rfind(b"\n") + 1]
    assert after.startswith(kept) and len(after.splitlines()) == len(before.splitlines()) and is_remeasured(run)


def edited(place, **changes):
    """Return lines of pairs in which one is another, with a checksum that fits."""

    def edit(lines):
        pair = Pair.parse(lines[place][:-9])
        return [*lines[:place], replace(pair, **changes).line(), *lines[place + 1 :]]

    return edit


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        (lambda lines: [lines[0], *lines], 3),
        (lambda lines: [*lines, lines[-1]], 62),
        (lambda lines: [*lines, lines[7]], 62),
        (lambda lines: lines + lines, 62),
        (edited(20, round=1), 22),
        (edited(20, round=7), 22),
        (edited(20, round=0), 22),
        (edited(3, evaluation=0), 5),
        (edited(3, default=0.0), 5),
        (edited(3, default=np.nan), 5),
        (edited(3, value=-1.0), 5),
        (edited(3, value=np.nan), 5),
    ],
)
def test_a_pair_that_is_there_twice_or_that_nobody_measures_is_refused(run, edit, line):
    lines = (run / REMEASURED).read_text().splitlines(keepends=True)
    text = "".join([lines[0], *edit(lines[1:])])
    (run / REMEASURED).write_text(text)
    for read in (finalists, summarise, lambda run: perform(run, Noisy())):
        with pytest.raises(UserError, match=rf"remeasured\.csv, line {line} is damaged"):
            read(run)
    assert (run / REMEASURED).read_text() == text and list(readable([run])) == []


def test_pairs_of_another_run_are_named(run):
    with (run / REMEASURED).open("a") as file:
        file.writelines(Pair(number, 41, 4.0, 1.0, "0").line() for number in range(1, ROUNDS + 1))
    with pytest.raises(UserError, match=r"has evaluation 41, which rows\.csv lacks"):
        _ = open_run(run).choice


def test_what_a_time_limit_interrupted_is_finished_once(tmp_path):
    class Timed(Noisy):
        def evaluate(self, configs):
            return replace(super().evaluate(configs), seconds=np.full(len(configs), 1.0))

    run, calls = tmp_path / "s" / "run", iter([False] * 15)
    assert not perform(run, Timed(), max_seconds=10, stopped=lambda: next(calls, True))
    assert perform(run, Timed())  # the best are others now: some of the first were measured in a few rounds only
    assert min(len(each) for each in rounds(run).values()) < ROUNDS
    again = Timed()
    assert perform(run, again) and again.calls == 0 and is_remeasured(run)
    assert json.loads((run / END).read_text())["pairs"] == sum(map(len, rounds(run).values()))


def rounds(run):
    """Return the rounds of each candidate."""
    found = defaultdict(list)
    for pair in PairLog(run):
        found[pair.evaluation].append(pair.round)
    return found


def test_a_run_that_had_ended_without_it_is_measured_again_and_keeps_its_rows(run):
    (run / REMEASURED).unlink()
    (run / END).write_text('{"reason": "budget", "evaluations": 40}')
    rows = (run / "rows.csv").read_bytes()
    assert summarise(run)["speedup"] == summarise(run)["search_speedup"] and not summarise(run)["remeasured"]
    problem = Noisy()
    assert perform(run, problem) and problem.calls == MEASUREMENTS
    assert (run / "rows.csv").read_bytes() == rows and summarise(run)["remeasured"]
    kept = contents(run)
    assert perform(run, problem) and contents(run) == kept and problem.calls == MEASUREMENTS


def test_every_changed_byte_is_refused(run):
    whole = (run / REMEASURED).read_bytes()
    for place in range(0, 500, 7):
        changed = bytearray(whole)
        changed[place] ^= 4
        (run / REMEASURED).write_bytes(changed)
        with pytest.raises(UserError, match=r"remeasured\.csv, line \d+ is damaged"):
            finalists(run)


def test_a_candidate_that_fails_or_costs_nothing_has_a_speedup():
    speedups = [Pair(1, 1, 2.0, value, "0").speedup for value in (np.inf, 4.0, 2.0, 1.0, 0.0)]
    assert speedups == [0.0, 0.5, 1.0, 2.0, np.inf] and Pair(1, 1, 0.0, 0.0, "0").speedup == 1.0


def test_a_run_in_which_everything_failed_has_no_finalist_and_ends(tmp_path):
    class Failing(Noisy):
        def evaluate(self, configs):
            own = super().evaluate(configs)
            bad = (configs != self.default).any(axis=1)
            return Evaluations(np.where(bad, np.inf, own.values), np.where(bad, 1, own.status))

    class Other(Climber):
        def ask(self, n):
            return np.repeat((self._best + np.eye(len(self._best), dtype=int)[0])[None], n, axis=0)

        def tell(self, configs, values):
            pass

    run = tmp_path / "s" / "run"
    assert perform(run, Failing(), Other) and finalists(run) == []
    assert json.loads((run / END).read_text())["reason"] == "budget" and summarise(run)["speedup"] is None
    assert is_remeasured(run)


def test_the_candidate_to_use_is_the_best_of_those_measured_again(run):
    stored, last = open_run(run), max(finalists(run), key=lambda each: each.speedup)
    row, cost = stored.choice
    assert (row.evaluation, row.config, cost) == (last.evaluation, last.config, 4.0 / last.speedup)
    assert last.evaluation != stored.best.evaluation
    (run / REMEASURED).unlink()
    assert open_run(run).choice == (stored.best, stored.best.value)
