"""The network: for every value of every parameter, how much it is wanted."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array
from numpy.typing import NDArray

from .attention import SegmentedAttention
from .sage import SageLayer

WIDTH = 64
VALUES = 64
"""Values of a parameter that have an embedding of their own; see `Values`."""
FACTS = 4
"""Numbers that are known of a proposal as a whole; see `proposals`."""
STATE = 6
"""Numbers that say how a value stands to the state and what became of it so far; see `Player`."""
BOUND = 1.0
"""Of scores, in either direction: no proposal is more than `exp(2)` times as likely as another."""
SURE = 5.0
"""The same of a policy that was pre-trained: what it knows is worth more than what a search has time to learn."""
_LAYERS, _PASSES, _HEAD = 2, 2, 32


Numbers = Array | NDArray


class Graph(NamedTuple):
    """What a task is to the network, padded to shapes that many tasks share.

    Attributes:
      nodes: `(n, f)` features of the nodes of the computation graph.
      edges: `(m, 2)` producers and consumers.
      features: `(d, g)` features of the parameters.
      ends: `(d, 2)` the nodes that each parameter is about, `(d, 2)` of `bound` says if there is one.
      real: `(d,)` is it a parameter, and no padding?
      parameter, value: `(c,)` of each value, and `(c,)` of `exists`: is it one, and no padding?
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

    A parameter's embedding is made of its features and of the nodes that it is about. The attention runs over the
    parameters; what it decides is fed back to it in a second pass. No weight belongs to a node or a parameter, so one
    policy serves every graph whose features have the same widths. `facts` are the weights of what is known of a
    proposal as a whole, `bound` is that of scores.
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

    def __call__(self, graph: Graph, state: Array) -> Array:
        """Return `(c,)` worths: how much each value is wanted.

        Args:
          graph: of the task.
          state: `(c, STATE)`, which varies during the search.
        """
        h, exists = self._embed(graph), jnp.asarray(graph.exists)
        described = jax.vmap(self.state)(state) + self.values[graph.value]

        def refine(decided: Array, _: None) -> tuple[Array, Array]:
            context = jnp.zeros((len(h), _HEAD)).at[graph.parameter].add(decided[:, None] * described)
            z = h + self.attention(h + jax.vmap(self.back)(context), jnp.asarray(graph.real))
            hidden = jax.nn.leaky_relu(jax.vmap(self.change)(z)[graph.parameter] + described, 0.1)  # relu died
            worth = jax.vmap(self.out)(hidden)[:, 0]
            return exists * jax.nn.sigmoid(worth), worth

        _, worth = jax.lax.scan(refine, state[:, 0], length=_PASSES)  # at first, what the state has
        return worth[-1]

    def _embed(self, graph: Graph) -> Array:
        """Return `(d, WIDTH)` embeddings of the parameters."""
        edges = jnp.asarray(graph.edges)
        h = jax.nn.leaky_relu(jax.vmap(self.node)(jnp.asarray(graph.nodes)), 0.1)
        h, _ = jax.lax.scan(lambda h, layer: (layer(h, edges), None), h, self.layers)
        ends = (h[graph.ends] * graph.bound[:, :, None]).reshape(len(graph.ends), -1)
        h = jax.vmap(self.feature)(jnp.asarray(graph.features)) + jax.vmap(self.ends)(ends)
        return _standardised(jax.nn.leaky_relu(h, 0.1), jnp.asarray(graph.real)[:, None])


def _standardised(h: Array, real: Array) -> Array:
    """Return embeddings of mean 0 and variance 1 over the graph: what all parameters share says nothing of any.

    As GraphNorm (Cai et al. 2021). Without it what they share grew with training until it drowned the rest.
    """
    count = jnp.maximum(real.sum(), 1)
    centred = (h - (h * real).sum(axis=0) / count) * real
    return centred / jnp.sqrt((centred**2).sum(axis=0) / count + 1e-3)
