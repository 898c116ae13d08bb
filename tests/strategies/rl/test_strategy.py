"""The whole strategy on small tasks, pre-training by the command line, and imitation of demonstrations.

The objective is held against its definition; the network takes graphs of any size.
"""

import os
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from bbo_strategies.rl import ReinforcementLearning, ReinforcementOptions
from bbo_strategies.rl.learning import (
    Demonstration,
    Rewards,
    RolloutBuffer,
    Settings,
    decide,
    demonstrate,
    imitate,
    objective,
    regret,
    scores,
)
from bbo_strategies.rl.policy import BOUND, PRETRAINED_BOUND, STATE, Names, graph_inputs, random_policy
from bbo_strategies.rl.proposals import ParameterValues, draw, log_softmax, proposals_of
from bbo_suite import Graph, Space, Structure, Task, UserError, product, sequence
from bbo_suite.core.versions import PinnedFile
from bbo_suite.pretraining import Lesson
from bbo_suite.testing import play, start

from ..peers import joined

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
    return joined(play(strategy, lambda rows: 1 + rows @ weights, batch))


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


RNG = np.random.default_rng(0)
SPACE = Space(np.full(12, 3))
VALUES = ParameterValues(SPACE)
WEIGHTS = RNG.normal(size=4).astype(np.float32)


def played(worth):
    """Return three batches as buffer, and (proposals, chosen, log-probabilities, rewards) of each."""
    buffer, batches = RolloutBuffer(), []
    for n in (3, 1, 4):
        state = SPACE.sample(1, RNG)[0]
        is_open = RNG.random(6 * n) < 0.8
        proposals = proposals_of(SPACE.sample(6 * n, RNG), state, RNG.integers(0, 3, 6 * n), is_open, VALUES)
        logs = log_softmax(proposals.scores(worth, WEIGHTS, BOUND), is_open)
        chosen, rewards = draw(logs, n, RNG), RNG.normal(size=n)
        buffer.add(proposals, chosen, logs[chosen])
        buffer.reward(rewards)
        batches.append((proposals, chosen, logs[chosen], rewards))
    return buffer, batches


def test_the_loss_is_the_clipped_surrogate_of_every_choice_in_its_batch():
    old, clip = RNG.normal(size=36).astype(np.float32), 0.2
    new = old + 0.5 * RNG.normal(size=36).astype(np.float32)
    buffer, batches = played(old)
    every = np.concatenate([rewards for *_, rewards in batches])
    surrogate, entropy = [], []
    for proposals, chosen, before, rewards in batches:
        logs = log_softmax(proposals.scores(new, WEIGHTS, BOUND), proposals.open)
        advantages = (rewards - every.mean()) / every.std()
        ratio = np.exp(logs[chosen] - before)
        surrogate.extend(np.minimum(ratio * advantages, np.clip(ratio, 1 - clip, 1 + clip) * advantages))
        entropy.append(-(np.exp(logs) * np.where(proposals.open, logs, 0)).sum())
    wanted = -np.mean(surrogate) - 0.01 * np.mean(entropy)
    data = buffer.rollout(8)
    loss = objective(scores(new, WEIGHTS, BOUND, data), data, Settings(clip, 0.01))
    assert loss == pytest.approx(wanted, rel=1e-3)


def test_each_value_gets_its_share_of_the_reward_of_its_candidate():
    buffer, batches = played(np.zeros(36))
    _, reward, weight = buffer.shares()
    assert weight.sum() == pytest.approx(8)
    assert (reward * weight).sum() == pytest.approx(sum(rewards.sum() for *_, rewards in batches))


def test_rewards_keep_the_order_of_costs_and_penalise_failures_and_equal_costs():
    values = np.array([0.9, 0.99, 1.0, 1.001, 1.5, np.inf])
    rewards = Rewards()(values, 1.0)
    assert rewards[0] > rewards[1] > 1 > 0 > rewards[3] > rewards[4] > rewards[5]
    assert 0 > rewards[2] > rewards[5]
    assert np.allclose(Rewards()(values * 1e-300, 1e-300)[:5], rewards[:5], rtol=1e-3)


@pytest.mark.parametrize("values", [[np.inf, np.inf], [0.0, 0.0], [1e308, 1e-308], [0.0, np.inf]])
@pytest.mark.parametrize("state", [0.0, 1.0, np.inf])
def test_rewards_are_finite(values, state):
    assert np.isfinite(Rewards()(np.array(values), state)).all()


def toy_task(n=40, size=3):
    """A chain with some skips; parameter i is at edge i."""
    edges = np.array([(i, i + 1) for i in range(n - 1)] + [(i, i + 3) for i in range(0, n - 3, 5)], np.int32)
    d = len(edges)
    features = np.random.default_rng(1).normal(size=(d, 4)).astype(np.float32)
    nodes = np.random.default_rng(2).normal(size=(n, 5)).astype(np.float32)
    graph = Graph(nodes, tuple("abcde"), edges)
    starts = np.zeros(d + 1, np.int64)
    declared = Structure(
        starts, np.empty(0, np.int32), features, tuple("abcd"), graph, edges=np.arange(d, dtype=np.int32)
    )
    return Task("toy/x", Space(np.full(d, size)), np.zeros(d, np.int64), "seconds", declared)


def worths(task, policy=None):
    values = ParameterValues(task.space)
    graph = graph_inputs(task, values, Names.of([task]))
    policy = policy or random_policy(graph.nodes.shape[1], graph.features.shape[1], np.random.default_rng(0))
    return policy, np.asarray(decide(policy, graph, state_of(task, graph)))[: len(values)]


def state_of(task, graph):
    state = np.zeros((len(graph.value), STATE), np.float32)
    values = ParameterValues(task.space)
    state[: len(values), :4] = values.state(task.default, task.default)
    return state


def test_an_untrained_policy_prefers_all_values_about_equally():
    assert np.ptp(worths(toy_task())[1]) < 0.5


@pytest.mark.parametrize("n", [20, 150])
def test_one_policy_serves_graphs_of_any_size(n):
    policy = worths(toy_task())[0]
    assert np.isfinite(worths(toy_task(n, size=5), policy)[1]).all()


def test_padding_changes_nothing():
    task = toy_task()
    values = ParameterValues(task.space)
    graph = graph_inputs(task, values, Names.of([task]))
    policy = random_policy(graph.nodes.shape[1], graph.features.shape[1], np.random.default_rng(0))
    wide = graph._replace(
        nodes=np.vstack([graph.nodes, RNG.normal(size=(64, graph.nodes.shape[1]))]).astype(np.float32),
        features=np.vstack([graph.features, RNG.normal(size=(128, graph.features.shape[1]))]).astype(np.float32),
        ends=np.vstack([graph.ends, np.zeros((128, 2), np.int32)]),
        bound=np.vstack([graph.bound, np.zeros((128, 2), np.float32)]),
        real=np.append(graph.real, np.zeros(128, bool)),
    )
    narrow, padded = (decide(policy, g, state_of(task, graph)) for g in (graph, wide))
    assert np.allclose(narrow[: len(values)], padded[: len(values)], atol=1e-4)


IMITATED = np.random.default_rng(0)


def weighed_lesson(seed=0, d=40):
    """One feature says which parameters had better have their last value; the others are noise."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(d, 3)).astype(np.float32)
    declared = Structure(np.zeros(d + 1, np.int64), np.empty(0, np.int32), features, tuple("abc"))
    weights = np.where(features[:, 0] > 0.5, -1.0, 1.0)
    task = Task("toy/features", Space(np.full(d, 3)), np.zeros(d, np.int64), "seconds", declared)
    return Lesson(task, 100.0, lambda rows: 100 + rows @ weights), weights


def test_the_loss_is_the_weighted_mean_over_values():
    preferences, best = IMITATED.normal(size=6).astype(np.float32), np.array([1, 1, 1, 3, 3, 5])
    weights = np.array([0.5, 0, 2, 0, 1, 0], np.float32)
    shown = Demonstration(None, None, best, weights)
    wanted = sum(w * np.log1p(np.exp(preferences[i] - preferences[best[i]])) for i, w in enumerate(weights)) / 3.5
    assert regret(jnp.asarray(preferences), shown) == pytest.approx(wanted, rel=1e-5)


def test_a_demonstration_shows_the_best_values_and_what_the_others_cost():
    given, weights = weighed_lesson()
    shown = demonstrate(given, Names.of([given.task]), 4000, IMITATED)
    best = np.where(weights < 0, 2, 0)
    assert np.array_equal(shown.best[:120], np.repeat(np.arange(40) * 3 + best, 3))
    assert not shown.weights[shown.best[:120]].any() and not shown.weights[120:].any()
    others = np.setdiff1d(np.arange(120), shown.best)
    gain = -2 * weights[weights < 0].sum()
    steps = np.abs(others % 3 - np.repeat(best, 3)[others])  # each costs 1
    assert shown.weights[others] == pytest.approx(np.minimum(steps / gain, 0.03) + 0.003, rel=1e-5)


def test_where_nothing_gains_nothing_is_shown():
    given, _ = weighed_lesson()
    worse = Lesson(given.task, 100.0, lambda rows: 100.0 + rows.sum(axis=1))
    assert demonstrate(worse, Names.of([given.task]), 200, IMITATED) is None


def test_a_policy_prefers_on_another_task_what_pays():
    """The tasks share nothing but what their features mean."""
    lessons, names = [weighed_lesson(seed)[0] for seed in range(12)], Names.of([weighed_lesson()[0].task])
    shown = [demonstrate(one, names, 2000, IMITATED) for one in lessons]
    policy = imitate(random_policy(*names.widths, IMITATED, PRETRAINED_BOUND), shown, IMITATED, lambda _: None)
    other, weights = weighed_lesson(9)
    unseen = demonstrate(other, names, 2000, IMITATED)
    preferences = np.asarray(decide(policy, unseen.graph, unseen.state))[:120].reshape(40, 3)
    assert np.mean((preferences[:, 2] > preferences[:, 0]) == (weights < 0)) > 0.8
