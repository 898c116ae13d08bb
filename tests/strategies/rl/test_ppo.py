"""The objective, against its definition, the network, graphs of any size; and imitation of demonstrations."""

import jax.numpy as jnp
import numpy as np
import pytest

from bbo_strategies.rl.imitation import Demonstration, demonstrate, imitate, regret
from bbo_strategies.rl.policy import BOUND, PRETRAINED_BOUND, STATE, Names, graph_inputs, random_policy
from bbo_strategies.rl.ppo import Rewards, RolloutBuffer, Settings, decide, objective, scores
from bbo_strategies.rl.proposals import ParameterValues, draw, log_softmax, proposals_of
from bbo_suite import Graph, Space, Structure, Task
from bbo_suite.pretraining import Lesson

pytestmark = pytest.mark.slow  # compiles networks

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


def lesson(seed=0, d=40):
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
    given, weights = lesson()
    shown = demonstrate(given, Names.of([given.task]), 4000, IMITATED)
    best = np.where(weights < 0, 2, 0)
    assert np.array_equal(shown.best[:120], np.repeat(np.arange(40) * 3 + best, 3))
    assert not shown.weights[shown.best[:120]].any() and not shown.weights[120:].any()
    others = np.setdiff1d(np.arange(120), shown.best)
    gain = -2 * weights[weights < 0].sum()
    steps = np.abs(others % 3 - np.repeat(best, 3)[others])  # each costs 1
    assert shown.weights[others] == pytest.approx(np.minimum(steps / gain, 0.03) + 0.003, rel=1e-5)


def test_where_nothing_gains_nothing_is_shown():
    given, _ = lesson()
    worse = Lesson(given.task, 100.0, lambda rows: 100.0 + rows.sum(axis=1))
    assert demonstrate(worse, Names.of([given.task]), 200, IMITATED) is None


def test_a_policy_prefers_on_another_task_what_pays():
    """The tasks share nothing but what their features mean."""
    lessons, names = [lesson(seed)[0] for seed in range(12)], Names.of([lesson()[0].task])
    shown = [demonstrate(one, names, 2000, IMITATED) for one in lessons]
    policy = imitate(random_policy(*names.widths, IMITATED, PRETRAINED_BOUND), shown, IMITATED, lambda _: None)
    other, weights = lesson(9)
    unseen = demonstrate(other, names, 2000, IMITATED)
    preferences = np.asarray(decide(policy, unseen.graph, unseen.state))[:120].reshape(40, 3)
    assert np.mean((preferences[:, 2] > preferences[:, 0]) == (weights < 0)) > 0.8
