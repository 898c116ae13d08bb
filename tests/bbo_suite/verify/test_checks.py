"""`validate` finds parts that are damaged, that do not make up their costs, or that are others now."""

import re
import shutil

import pytest

import bbo_suite
from bbo_suite.files.log import checksummed
from bbo_suite.registry import Registry
from bbo_suite.verify.validate import Finding, validate

PROBLEM = """
import numpy as np
from bbo_suite import Evaluations, Parts, Problem, Space, Status

class Bags(Problem):
    instances = ("four",)

    def __init__(self, instance):
        self.space, self.default = Space([4] * 4), np.ones(4, int)

    def fingerprint(self):
        return "bags"

    def evaluate(self, configs):
        return self.evaluate_parts(configs)

    def evaluate_parts(self, configs):
        costs = configs.astype(float) ** 2 + 1
        costs[configs[:, 0] == 3, 0] = np.inf
        status = np.where(configs[:, 0] == 3, Status.COMPILE_ERROR, Status.OK).astype(np.int8)
        n, counts = len(configs), np.ones(configs.size)
        starts, keys = np.arange(0, 4 * n + 1, 4), (configs + 4 * np.arange(4)).astype(np.uint64)
        values = costs.sum(axis=1)
        costs[:, :2] += [[0.25, -0.25]] if SHIFTED else 0
        return Evaluations(values, status, parts=Parts(starts, keys.ravel(), counts, costs.ravel()))
"""
STRATEGY = """
import numpy as np
from bbo_suite import Level, Strategy

class Listener(Strategy):
    level = Level.PARTS
    heard = 0

    def ask(self, n):
        return np.random.default_rng(self.heard).integers(0, 4, (n, 4))

    def receive(self, told):
        parts = told.parts
        self.heard += int(parts.keys.sum()) + int(parts.costs[np.isfinite(parts.costs)].sum())
"""


@pytest.fixture(scope="module")
def plugins(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plugins")
    (folder / "bags.py").write_text(PROBLEM.replace("SHIFTED", "False"))
    (folder / "listener.py").write_text(STRATEGY)
    (folder / "new").mkdir()
    (folder / "new" / "bags.py").write_text(PROBLEM.replace("SHIFTED", "True"))
    return folder


@pytest.fixture(scope="module")
def made(plugins, tmp_path_factory):
    results, files = tmp_path_factory.mktemp("made"), [plugins / "bags.py", plugins / "listener.py"]
    bbo_suite.run("listener", "bags/four", budget=30, batch=7, study="s", results=results, plugins=files, quiet=True)
    return results


def verdict(results, *files):
    return next(iter(validate(Registry(files), "s", results, 10, lambda *_: None)))


@pytest.fixture
def copied(made, tmp_path):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path, next(tmp_path.rglob("parts.csv"))


def test_parts_of_a_sound_run_hold(made, plugins):
    found = verdict(made, plugins / "bags.py", plugins / "listener.py")
    assert (found.log, found.replayed, found.values) == (Finding.HOLDS,) * 3 and not found.complaints


@pytest.mark.parametrize("known", [True, False])
def test_damage_is_named_with_its_line_also_without_the_problem(copied, plugins, known):
    results, log = copied
    log.write_bytes(log.read_bytes().replace(b"\n12,", b"\n12,+0 ", 1))
    found = verdict(results, *([plugins / "bags.py", plugins / "listener.py"] if known else []))
    assert found.log is Finding.BROKEN and any("parts.csv, line 13 is damaged" in text for text in found.complaints)


def test_a_log_that_is_cut_or_gone_lacks_evaluations(copied, plugins):
    results, log = copied
    lines = log.read_bytes().splitlines(keepends=True)
    for kept, first in ((lines[:-3], 28), ([], 1)):
        log.write_bytes(b"".join(kept))
        found = verdict(results, plugins / "bags.py", plugins / "listener.py")
        assert f"lacks evaluation {first}" in found.complaints[0] and found.log is Finding.BROKEN
    log.unlink()
    assert "lacks evaluation 1" in verdict(results, plugins / "bags.py").complaints[0]


def test_parts_that_do_not_make_up_their_cost_are_named(copied, plugins):
    results, log = copied
    lines = log.read_text().splitlines(keepends=True)
    number, tokens, _ = lines[1].split(",")
    lines[1] = checksummed(f"{number},{tokens}1,")
    log.write_text("".join(lines))
    found = verdict(results, plugins / "bags.py")
    assert found.log is Finding.BROKEN and re.match(r"the parts of evaluation \d+ make ", found.complaints[0])


def test_parts_that_are_others_now_are_named_by_their_key(made, plugins):
    broken = plugins / "new" / "bags.py"
    found = verdict(made, broken, plugins / "listener.py")
    assert found.values is Finding.BROKEN and found.log is Finding.HOLDS
    assert any("of evaluation 1 was" in text and "and is" in text for text in found.complaints)
