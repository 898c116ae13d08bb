import shutil
from pathlib import Path

import numpy as np
import pytest

import bbo_suite
from bbo_suite import Evaluations, Parts, Problem, Space, Strategy, UserError
from bbo_suite.core.problem import Status
from bbo_suite.parts.parts import concatenated
from bbo_suite.store.parts_log import PartsLog


class Bags(Problem):
    """Four bags; the first fails at 3, and the cost of the last varies."""

    noisy = True
    instances = ("four",)

    def __init__(self, instance="four"):
        self.space, self.default = Space([4] * 4), np.ones(4, int)

    def evaluate(self, configs):
        return self.evaluate_parts(configs)

    def evaluate_parts(self, configs):
        costs = configs.astype(float) ** 2 + 1
        costs[:, 3] += 0.25 * (configs.sum(axis=1) % 2)
        costs[configs[:, 0] == 3, 0] = np.inf
        kept = configs != 2
        keys = (configs + 4 * np.arange(4)).astype(np.uint64)[kept]
        starts = np.append(0, np.cumsum(kept.sum(axis=1)))
        values = np.where(kept, costs, 0).sum(axis=1)
        status = np.where(np.isinf(values), Status.COMPILE_ERROR, Status.OK).astype(np.int8)
        return Evaluations(values, status, parts=Parts(starts, keys, np.ones(len(keys)), costs[kept]))


class Listener(Strategy):
    """Proposes what follows from all that it was told of parts."""

    level = bbo_suite.Level.PARTS
    heard = 0.0

    def ask(self, n):
        rng = np.random.default_rng(int(self.heard * 64))
        return rng.integers(0, 4, (n, 4))

    def receive(self, told):
        parts = told.parts
        costs = np.where(np.isinf(parts.costs), 100.0, parts.costs)
        self.heard += float((costs * parts.counts * (parts.keys + 1)).sum()) + len(parts.starts)


def run(folder, **options):
    bbo_suite.run(Listener, Bags, budget=60, batch=7, study="s", results=folder, quiet=True, **options)
    return next(Path(folder, "s").glob("*/rows.csv")).parent


def columns(path):
    return [line.split(",")[:4] for line in (path / "rows.csv").read_text().splitlines()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return run(tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("cut", [70, 700, 1500, 2500])
def test_a_run_that_was_killed_hears_the_same_parts_again(whole, cut, tmp_path):
    shutil.copytree(whole.parent.parent, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "s" / whole.name
    rows, parts = path / "rows.csv", path / "parts.csv"
    rows.write_bytes(rows.read_bytes()[:cut])
    parts.write_bytes(parts.read_bytes() + b"61,torn")
    (path / "end.json").unlink()
    run(tmp_path)
    assert columns(path) == columns(whole)


def test_parts_that_are_missing_or_damaged_stop_a_resume_and_change_nothing(whole, tmp_path):
    shutil.copytree(whole.parent.parent, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "s" / whole.name
    (path / "end.json").unlink()
    rows, parts, log = (path / "rows.csv").read_bytes(), path / "parts.csv", (path / "parts.csv").read_bytes()
    lines = log.splitlines(keepends=True)
    wrong = {
        "lacks evaluation 60": b"".join(lines[:-1]),
        "line 3 is damaged": log.replace(b"\n2,", b"\n2, ", 1),
        "line 1 is damaged": log[1:],
    }
    for why, text in wrong.items():
        parts.write_bytes(text)
        with pytest.raises(UserError, match=why):
            run(tmp_path)
        assert (path / "rows.csv").read_bytes() == rows and parts.read_bytes() == text


def test_a_log_keeps_each_cost_once(tmp_path):
    log, parts = (
        PartsLog(tmp_path),
        told([{1: (1, 0.5), 2: (3, 0.25)}, {1: (1, 0.5)}, {}, {2: (3, 0.25), 1: (2, 0.75)}]),
    )
    log.append(1, parts)
    lines = [line.split(",")[1] for line in (tmp_path / "parts.csv").read_text().splitlines()[1:]]
    assert lines == ["0000000000000001*1.0=0.5 0000000000000002*3.0=0.25", "-1", "-0", "+0*2.0=0.75 +1"]
    again = PartsLog(tmp_path)
    replayed = concatenated([again.replay(1, 3), again.replay(4, 1)])
    for name in ("starts", "keys", "counts", "costs"):
        assert np.array_equal(getattr(replayed, name), getattr(parts, name))


def test_a_log_of_equal_candidates_grows_by_a_few_bytes_each(tmp_path):
    log, parts = PartsLog(tmp_path), told([{key: (1, 0.5) for key in range(1000)}])
    for evaluation in range(1, 101):
        log.append(evaluation, parts)
    lines = (tmp_path / "parts.csv").read_bytes().splitlines()
    assert len(lines) == 101 and max(map(len, lines[2:])) < 20


def told(candidates):
    rows = [(key, *candidate[key]) for candidate in candidates for key in sorted(candidate)]
    keys, counts, costs = np.array(rows).T
    return Parts(np.cumsum([0, *map(len, candidates)]), keys.astype(np.uint64), counts, costs)


def test_a_strategy_that_uses_parts_hears_none_of_a_problem_without_them(tmp_path):
    heard = []

    class Hears(Listener):
        def receive(self, told):
            heard.append(told.parts)

    class Plain(Problem):
        instances = ("four",)

        def __init__(self, instance="four"):
            self.space, self.default = Space([4] * 4), np.ones(4, int)

        def evaluate(self, configs):
            return Evaluations.of(configs.sum(axis=1) + 1.0)

    bbo_suite.run(Hears, Plain, budget=20, batch=10, study="s", results=tmp_path, quiet=True)
    assert heard == [None]
