"""The network: graphs of any size, and padding."""

import numpy as np
import pytest

from bbo_strategies.rl.policy import STATE, Names, graph_inputs, random_policy
from bbo_strategies.rl.ppo import decide
from bbo_strategies.rl.proposals import ParameterValues
from bbo_suite import Graph, Space, Structure, Task

pytestmark = pytest.mark.slow  # compiles networks

RNG = np.random.default_rng(0)


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
