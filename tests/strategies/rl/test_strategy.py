"""The whole strategy on small tasks, and pre-training by the command line."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bbo_strategies.rl import ReinforcementLearning, ReinforcementOptions
from bbo_suite import Graph, Space, Structure, Task, UserError, product, sequence
from bbo_suite.core.versions import PinnedFile
from bbo_suite.pretraining import Lesson
from bbo_suite.testing import play, start

pytestmark = pytest.mark.slow  # compiles networks

TOYS = Path(__file__).parents[2] / "bbo_suite" / "plugins"


def task(d=60, seed=0):
    """One feature says which parameters had better be changed; the others are noise."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(d, 3)).astype(np.float32)
    declared = Structure(np.zeros(d + 1, np.int64), np.empty(0, np.int32), features, tuple("abc"))
    weights = np.where(features[:, 0] > 0.5, -0.002, 0.01)
    return Task("toy/features", Space(np.full(d, 2)), np.zeros(d, np.int64), "seconds", declared), weights


def search(budget, batch=32, seed=0, **options):
    """Return all candidates and costs of a run."""
    made, weights = task()
    strategy = ReinforcementLearning(made, budget, np.random.default_rng(seed), ReinforcementOptions(**options))
    rows, values = zip(*play(strategy, lambda rows: 1 + rows @ weights, batch), strict=True)
    return np.concatenate(rows), np.concatenate(values)


def test_the_policy_learns_which_changes_pay():
    """Half of the way is enough to see it; at the end all that pays is changed, for every policy."""
    spoiled = [(search(300, rate=rate, heat=0)[1] > 1.05).mean() for rate in (0.0, 0.01)]
    assert spoiled[1] < spoiled[0]


def test_no_candidate_is_proposed_twice():
    rows = search(300, heat=0)[0]
    assert len(np.unique(rows, axis=0)) > 0.95 * len(rows)


def test_the_batch_size_does_not_change_when_the_policy_learns():
    small, large = (search(300, batch)[1] for batch in (1, 200))
    assert len(small) == len(large) == 300
    assert small.min() < 1 and large.min() < 1


def lesson(seed, spent):
    made, weights = task(seed=seed)

    def evaluate(configs):
        spent.append(len(configs))
        return 1 + configs @ weights

    return Lesson(made, 1.0, evaluate)


def test_pretraining_stays_within_its_budget(tmp_path):
    spent, reported, out = [], [], tmp_path / "p.eqx"
    given = np.random.default_rng(0), ReinforcementOptions(), out, lambda n, _: reported.append(n)
    ReinforcementLearning.pretrain([lesson(1, spent), lesson(2, spent)], 500, *given)
    assert 250 < sum(spent) <= 500 and reported[-1] == 500 and out.exists()


@pytest.mark.parametrize(
    ("budget", "options", "complaint"),
    [(3, {}, "raise --budget to 4"), (9, {"pretrained": PinnedFile(__file__)}, "without pretrained")],
)
def test_impossible_pretraining_is_refused(tmp_path, budget, options, complaint):
    given = np.random.default_rng(0), ReinforcementOptions(**options), tmp_path / "p.eqx", lambda *_: None
    with pytest.raises(UserError, match=complaint):
        ReinforcementLearning.pretrain([lesson(1, []), lesson(2, [])], budget, *given)


def test_a_file_of_a_policy_begins_with_groups_of_what_it_prefers(tmp_path):
    given = np.random.default_rng(0), ReinforcementOptions(), tmp_path / "p.eqx", lambda *_: None
    ReinforcementLearning.pretrain([lesson(seed, []) for seed in range(2)], 2000, *given)
    values = search(12, pretrained=PinnedFile(str(tmp_path / "p.eqx")))[1]
    assert values.min() < 1 - 4 * 0.002  # several changes pay at once


def test_only_a_new_policy_begins_with_random_sequences(tmp_path):
    passes = product(sequence("pass", 10, "abcdef"))
    asked = lambda **options: start(ReinforcementLearning, passes, 100, **options).ask(10)[1:]  # noqa: E731
    assert len(np.unique(asked(), axis=0)) == 9
    gains = np.array([0, 0.1, -0.1, 0.2, 0.3, -0.2])
    made = Task("toy", passes, np.zeros(10, np.int64), "bytes")
    lessons = [Lesson(made, 1.0, lambda rows: 1 + gains[rows].mean(axis=1))]
    given = np.random.default_rng(0), ReinforcementOptions(), tmp_path / "p.eqx", lambda *_: None
    ReinforcementLearning.pretrain(lessons, 500, *given)
    assert len(asked(pretrained=PinnedFile(str(tmp_path / "p.eqx")))) == 1  # all that the policy prefers


def cli(folder, *arguments):
    command = [sys.executable, "-m", "bbo_suite", *map(str, arguments)]
    return subprocess.run(
        command, cwd=folder, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True
    )


def test_a_policy_is_pretrained_and_used_by_the_command_line(tmp_path):
    toy = ("--plugin", TOYS / "toy.py")
    given = ("--problem", "toy/small", "--problem", "toy/large", "--out", "p.eqx", "--budget", 60)
    done = cli(tmp_path, "pretrain", *toy, "--strategy", "rl", *given)
    assert done.returncode == 0, done.stderr
    assert "60/60 evaluations" in done.stderr
    run = ("run", *toy, "--problem", "toy/large", "--strategy", "rl", "--option", "pretrained=p.eqx", "--study", "s")
    assert (done := cli(tmp_path, *run, "--budget", 8)).returncode == 0, done.stderr
    content = (tmp_path / "p.eqx").read_bytes()
    (tmp_path / "p.eqx").write_bytes(content[:-9])
    done = cli(tmp_path, *run, "--budget", 8)
    assert done.returncode == 1
    assert "option" in done.stderr and "Traceback" not in done.stderr


def test_a_step_on_a_graph_of_100_000_nodes():
    n = 100_000
    rng = np.random.default_rng(0)
    edges = np.column_stack([rng.integers(0, n - 1, 2 * n), np.arange(2 * n) // 2]).astype(np.int32)
    graph = Graph(rng.normal(size=(n, 16)).astype(np.float32), tuple("x" * 16), edges)
    nothing = np.zeros(n + 1, np.int64), np.empty(0, np.int32)
    declared = Structure(*nothing, np.ones((n, 1), np.float32), ("one",), graph, nodes=np.arange(n, dtype=np.int32))
    large = Task("toy/large", Space(np.full(n, 2)), np.zeros(n, np.int64), "seconds", declared)
    player = ReinforcementLearning(large, 128, np.random.default_rng(0), ReinforcementOptions())
    rows = player.ask(8)
    player.tell(rows, 1.0 + rows[:, :1000].sum(axis=1))
    assert len(player.ask(8)) == 8
