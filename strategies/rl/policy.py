"""The network: a preference for every value of every parameter."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array
from numpy.typing import NDArray

from .layers import SageLayer, SegmentedAttention

WIDTH = 64
VALUES = 64
"""The number of values of a parameter that have an embedding of their own; see `ParameterValues`."""
FACTS = 4
"""Numbers that describe a proposal as a whole; see `proposals`."""
STATE = 6
"""Numbers that describe a value in the state and what it gained so far; see `Agent`."""
BOUND = 1.0
"""Bound of scores in either direction: no proposal is more than `exp(2)` times as likely as another."""
PRETRAINED_BOUND = 5.0
"""Bound for a pre-trained policy: it knows more than a search has time to learn."""
_LAYERS, _PASSES, _HEAD = 2, 2, 32


Numbers = Array | NDArray


class GraphInputs(NamedTuple):
    """A task as arrays for the network, padded to shapes that many tasks share.

    Attributes:
      nodes: `(n, f)` features of the nodes of the computation graph.
      edges: `(m, 2)` producers and consumers.
      features: `(d, g)` features of the parameters.
      ends: `(d, 2)` the nodes that each parameter decides about; 0 where there is none.
      bound: `(d, 2)` 1 where there is such a node, else 0.
      real: `(d,)` true for parameters, false for padding.
      parameter, value: `(c,)` the parameter and the number of each value.
      exists: `(c,)` true for values, false for padding.
    """

    nodes: Numbers
    edges: Numbers
    features: Numbers
    ends: Numbers
    bound: Numbers
    real: Numbers
    parameter: Numbers
    value: Numbers
    exists: Numbers


class Policy(eqx.Module):
    """GO's network (Zhou et al. 2020): GraphSAGE, segmented attention, all decisions in parallel, refined.

    A parameter's embedding is computed from its features and from the nodes that it decides about. The attention runs
    over the parameters; its decisions are fed back to it in a second pass. No weight belongs to a node or a parameter,
    so one policy serves every graph whose features have the same widths. `facts` are the weights of the numbers that
    describe a proposal as a whole; `bound` is the bound of scores. A policy file holds the weights in the order of
    these fields.
    """

    node: eqx.nn.Linear
    feature: eqx.nn.Linear
    ends: eqx.nn.Linear
    layers: SageLayer  # stacked
    attention: SegmentedAttention
    back: eqx.nn.Linear
    change: eqx.nn.Linear
    state: eqx.nn.Linear
    values: Array
    out: eqx.nn.Linear
    facts: Array
    bound: float = eqx.field(static=True)

    def __init__(self, node_width: int, feature_width: int, key: Array, bound: float = BOUND) -> None:
        k = jax.random.split(key, 9 + _LAYERS)
        self.node = eqx.nn.Linear(node_width, WIDTH, key=k[0])
        self.feature = eqx.nn.Linear(feature_width, WIDTH, key=k[1])
        self.ends = eqx.nn.Linear(2 * WIDTH, WIDTH, key=k[2])
        self.attention = SegmentedAttention(WIDTH, k[3])
        self.back = eqx.nn.Linear(_HEAD, WIDTH, key=k[4])
        self.change = eqx.nn.Linear(WIDTH, _HEAD, key=k[5])
        self.state = eqx.nn.Linear(STATE, _HEAD, key=k[6])
        self.values = jnp.zeros((VALUES, _HEAD))
        self.out = eqx.nn.Linear(_HEAD, 1, key=k[8])
        self.facts = jnp.zeros(FACTS)
        self.bound = bound
        self.layers = eqx.filter_vmap(lambda key: SageLayer(WIDTH, key))(k[9:])

    def __call__(self, graph: GraphInputs, state: Array) -> Array:
        """Return `(c,)` preferences: the larger, the more likely the policy sets this value.

        Args:
          graph: of the task.
          state: `(c, STATE)`, which varies during the search.
        """
        h, exists = self._embed(graph), jnp.asarray(graph.exists)
        described = jax.vmap(self.state)(state) + self.values[graph.value]

        def refine(decided: Array, _: None) -> tuple[Array, Array]:
            context = jnp.zeros((len(h), _HEAD)).at[graph.parameter].add(decided[:, None] * described)
            z = h + self.attention(h + jax.vmap(self.back)(context), jnp.asarray(graph.real))
            hidden = jax.nn.leaky_relu(
                jax.vmap(self.change)(z)[graph.parameter] + described, 0.1
            )  # with relu some units always gave 0
            preferences = jax.vmap(self.out)(hidden)[:, 0]
            return exists * jax.nn.sigmoid(preferences), preferences

        _, preferences = jax.lax.scan(refine, state[:, 0], length=_PASSES)  # begins with the values of the state
        return preferences[-1]

    def _embed(self, graph: GraphInputs) -> Array:
        """Return `(d, WIDTH)` embeddings of the parameters."""
        edges = jnp.asarray(graph.edges)
        h = jax.nn.leaky_relu(jax.vmap(self.node)(jnp.asarray(graph.nodes)), 0.1)
        h, _ = jax.lax.scan(lambda h, layer: (layer(h, edges), None), h, self.layers)
        ends = (h[graph.ends] * graph.bound[:, :, None]).reshape(len(graph.ends), -1)
        h = jax.vmap(self.feature)(jnp.asarray(graph.features)) + jax.vmap(self.ends)(ends)
        return _standardised(jax.nn.leaky_relu(h, 0.1), jnp.asarray(graph.real)[:, None])


def _standardised(h: Array, real: Array) -> Array:
    """Return embeddings of mean 0 and variance 1 over the graph, as GraphNorm (Cai et al. 2021) does.

    Without it the component that all parameters share grew with training until it hid all differences.
    """
    count = jnp.maximum(real.sum(), 1)
    centred = (h - (h * real).sum(axis=0) / count) * real
    return centred / jnp.sqrt((centred**2).sum(axis=0) / count + 1e-3)
