"""The command `pretrain`: what it writes, and its errors."""

from pathlib import Path

import pytest

LEARNER = """
from bbo_suite import Strategy
class Learner(Strategy):
    def ask(self, n):
        return self.task.space.sample(n, self.rng)
    @classmethod
    def pretrain(cls, lessons, budget, rng, options, out, progress):
        rows = lessons[0].task.space.sample(budget, rng)
        values = lessons[0].evaluate(rows)
        progress(budget, "learned")
        out.write_text(f"{len(lessons)} {lessons[0].default} {values.min()}")
"""


def test_a_strategy_learns_on_problems_and_writes_a_file(suite, toy, tmp_path):
    (tmp_path / "learner.py").write_text(LEARNER)
    given = ("--problem", "toy/small", "--problem", "toy/large", "--out", "w.txt", "--budget", 50)
    done = suite("pretrain", *toy[:2], "--plugin", "learner.py", "--strategy", "learner", *given)
    assert done.code == 0 and done.out.endswith("w.txt\n")
    assert "50/50 evaluations, learned" in done.err
    count, default, best = Path("w.txt").read_text().split()
    assert (count, default) == ("2", "5.0") and float(best) < 5


def test_an_existing_policy_is_not_overwritten(suite, toy, tmp_path):
    (tmp_path / "learner.py").write_text(LEARNER)
    (tmp_path / "w.txt").write_text("precious")
    given = ("--strategy", "learner", "--problem", "toy/small", "--out", "w.txt", "--budget", 50)
    done = suite("pretrain", *toy[:2], "--plugin", "learner.py", *given)
    assert done.code == 1 and "w.txt exists already; choose another file with --out, or delete it" in done.err
    assert Path("w.txt").read_text() == "precious"


@pytest.mark.slow
def test_tasks_are_drawn_from_a_family(suite, toy, tmp_path):
    (tmp_path / "learner.py").write_text(LEARNER)
    given = ("--plugin", "learner.py", "--strategy", "learner", "--budget", 5, "--out", "w.txt", "--tasks", 3)
    done = suite("pretrain", *toy[:2], *given, "--family", "tile/uniform", "--problem", "toy/small")
    assert done.code == 0 and Path("w.txt").read_text().split()[0] == "4"
