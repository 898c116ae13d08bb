"""The network: order of nodes, segments, masks and padding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bbo_strategies.rl import layers
from bbo_strategies.rl.inputs import Names, graph_inputs
from bbo_strategies.rl.layers import SEGMENT, SageLayer, SegmentedAttention
from bbo_strategies.rl.learner import random_policy
from bbo_strategies.rl.parameter_values import ParameterValues
from bbo_strategies.rl.policy import STATE, WIDTH
from bbo_strategies.rl.ppo import decide
from bbo_suite import Graph, Space, Structure, Task

KEY = jax.random.key(0)
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


def test_the_order_of_nodes_does_not_matter_to_sage():
    layer = SageLayer(WIDTH, KEY)
    h, edges = RNG.normal(size=(30, WIDTH)).astype(np.float32), RNG.integers(0, 30, (70, 2))
    order = RNG.permutation(30)
    place = np.argsort(order)
    assert np.allclose(layer(h, edges)[order], layer(h[order], place[edges]), atol=1e-5)


def test_sage_takes_the_largest_message_of_each_direction():
    layer = SageLayer(WIDTH, KEY)
    h, edges = RNG.normal(size=(4, WIDTH)).astype(np.float32), np.array([[0, 2], [1, 2]])
    down, up = np.split(np.maximum(np.asarray(jax.vmap(layer.pool)(h)), 0), 2, axis=1)
    below, above = np.zeros_like(h), np.zeros_like(h)
    below[2], above[0], above[1] = np.maximum(down[0], down[1]), up[2], up[2]
    joined = np.hstack([h, below, above])
    wanted = jax.vmap(layer.norm)(h + jax.nn.relu(jax.vmap(layer.update)(joined)))
    assert np.allclose(layer(h, edges), wanted, atol=1e-5)


@pytest.mark.slow
def test_one_segment_is_plain_attention():
    layer = SegmentedAttention(WIDTH, KEY)
    h = RNG.normal(size=(SEGMENT, WIDTH)).astype(np.float32)
    real = np.arange(SEGMENT) < 100
    heads = lambda x: x.reshape(1, SEGMENT, layers._HEADS, -1)  # noqa: E731
    both = jax.vmap(layer.keys)(h).reshape(SEGMENT, layers._HEADS, -1)
    k, v = jnp.split(both, 2, axis=2)
    mixed = jax.nn.dot_product_attention(
        heads(jax.vmap(layer.queries)(h)), k[None], v[None], mask=real[None, None, None]
    )
    wanted = jax.vmap(layer.merge)(mixed.reshape(SEGMENT, WIDTH))
    assert np.allclose(layer._attend(h, real), wanted, atol=1e-5)


def test_a_segment_sees_the_one_before_it_and_none_further():
    layer = SegmentedAttention(WIDTH, KEY)
    h = RNG.normal(size=(3 * SEGMENT, WIDTH)).astype(np.float32)
    real = np.ones(len(h), bool)
    other = h.copy()
    other[:SEGMENT] += RNG.normal(size=(SEGMENT, WIDTH))
    change = np.abs(np.asarray(layer._attend(h, real) - layer._attend(other, real))).max(axis=1)
    assert change[SEGMENT : 2 * SEGMENT].min() > 0
    assert change[2 * SEGMENT :].max() == 0


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
        features=np.vstack([graph.features, RNG.normal(size=(SEGMENT, graph.features.shape[1]))]).astype(np.float32),
        ends=np.vstack([graph.ends, np.zeros((SEGMENT, 2), np.int32)]),
        bound=np.vstack([graph.bound, np.zeros((SEGMENT, 2), np.float32)]),
        real=np.append(graph.real, np.zeros(SEGMENT, bool)),
    )
    narrow, padded = (decide(policy, g, state_of(task, graph)) for g in (graph, wide))
    assert np.allclose(narrow[: len(values)], padded[: len(values)], atol=1e-4)
