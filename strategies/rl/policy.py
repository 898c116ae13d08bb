"""The network, which has a preference for every value of every parameter: its inputs, its weights and its files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Structure, Task, UserError
from bbo_suite.files.arrays import ArrayFile
from bbo_suite.nets import SEGMENT, MaxSage, SegmentedAttention, padded, parameters, with_parameters

from ..graphs import pairs
from .proposals import FACTS, VALUES, ParameterValues

WIDTH = 64
STATE = 6
"""Numbers that describe a value in the state and what it gained so far; see `Agent`."""
BOUND = 1.0
"""Bound of scores in either direction: no proposal is more than `exp(2)` times as likely as another."""
PRETRAINED_BOUND = 5.0
"""Bound for a pre-trained policy: it knows more than a search has time to learn."""
_LAYERS, _PASSES, _HEAD = 2, 2, 32
Numbers = Array | NDArray
_POSITIONS = 16
_FACTS = 4  # numbers of a parameter that come from the space
FILE = ArrayFile(
    "policy of rl",
    4,
    "make one with `python -m bbo_suite pretrain --strategy rl`",
    {"width": WIDTH, "values": VALUES},
)
"""The version is raised whenever the layers, or the meaning of the inputs, change."""


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
    layers: MaxSage  # stacked
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
        self.layers = eqx.filter_vmap(lambda key: MaxSage(WIDTH, key))(k[9:])

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


class Names(NamedTuple):
    """The names of the features that a policy takes: one policy serves tasks of several families.

    Attributes:
      nodes: of a node of the computation graph.
      parameters: of a parameter.
    """

    nodes: tuple[str, ...]
    parameters: tuple[str, ...]

    @classmethod
    def of(cls, tasks: Iterable[Task]) -> Names:
        """Return all names of the features of some tasks, each once."""
        found = [_own_names(task) for task in tasks]
        return cls(
            *(tuple(dict.fromkeys(name for names in side for name in names)) for side in zip(*found, strict=True))
        )

    @property
    def widths(self) -> tuple[int, int]:
        """The number of inputs of a node and of a parameter."""
        return len(self.nodes), len(self.parameters) + _FACTS

    def unknown(self, task: Task) -> list[str]:
        """Return the features of a task that are not among these."""
        nodes, parameters = _own_names(task)
        return [*(n for n in nodes if n not in self.nodes), *(n for n in parameters if n not in self.parameters)]


def graph_inputs(task: Task, values: ParameterValues, names: Names) -> GraphInputs:
    """Return the task as the network sees it; features that the task does not have are 0.

    Without a computation graph the parameters themselves are the nodes, and an edge joins two that interact. Without a
    structure they form a chain, and their features are their positions.
    """
    d, s = len(task.space), task.structure
    features: NDArray = _positions(d) if s is None else s.features
    if s is not None and s.graph is not None:
        nodes, edges, ends = s.graph.node_features, s.graph.edges, _ends(s, d)
    else:
        nodes, edges = features, _links(s, d)
        ends = np.column_stack([np.arange(d), np.full(d, -1)])
    facts = np.column_stack([np.log(task.space.sizes), np.eye(3)[task.space.kinds]])
    own = _own_names(task)
    nodes = _aligned(_squashed(nodes), own.nodes, names.nodes)
    features = _aligned(_squashed(features), own.parameters, names.parameters)
    return _assembled(nodes, edges, np.hstack([features, facts]), ends, values)


def observed(
    task: Task, values: ParameterValues, n: int, state: NDArray | None = None, statistics: NDArray | None = None
) -> NDArray[np.float32]:
    """Return `(n, STATE)` numbers of each value, padded.

    Args:
      state: `(d,)` a candidate; by default the task's default.
      statistics: `(c, 2)` what is known of each value; by default nothing.
    """
    known = values.state(task.default if state is None else state, task.default)
    more = np.zeros((len(known), STATE - known.shape[1])) if statistics is None else statistics
    return padded(np.hstack([known, more]), n).astype(np.float32)


def _own_names(task: Task) -> Names:
    s = task.structure
    own = tuple(f"position {i}" for i in range(2 * (_POSITIONS // 2))) if s is None else tuple(s.feature_names)
    return Names(own if s is None or s.graph is None else tuple(s.graph.feature_names), own)


def _aligned(features: NDArray, own: tuple[str, ...], wanted: tuple[str, ...]) -> NDArray:
    """Return the columns in the order of the wanted names; zeros for a name that is not there."""
    place = {name: i for i, name in enumerate(wanted)}
    aligned = np.zeros((len(features), len(wanted)))
    aligned[:, [place[name] for name in own]] = features
    return aligned


def _ends(structure: Structure, d: int) -> NDArray:
    """Return `(d, 2)` the nodes that each parameter decides about, -1 for none."""
    ends = np.full((d, 2), -1)
    if structure.nodes is not None:
        ends[:, 0] = structure.nodes
    if structure.edges is not None and structure.graph is not None:
        on_edge = structure.edges >= 0
        ends[on_edge] = structure.graph.edges[structure.edges[on_edge]]
    return ends


def _links(structure: Structure | None, d: int) -> NDArray:
    if structure is None:
        return np.column_stack([np.arange(d - 1), np.arange(1, d)])
    return np.column_stack(pairs(structure.starts, structure.neighbours))


def _positions(d: int) -> NDArray[np.float64]:
    """Return `(d, 16)` sines and cosines of the position, from one period over all parameters to 128 periods."""
    angles = np.outer(np.arange(d) / d, 2.0 ** np.arange(_POSITIONS // 2)) * 2 * np.pi
    return np.hstack([np.sin(angles), np.cos(angles)])


def _squashed(features: NDArray) -> NDArray:
    """Return features scaled to similar magnitudes, in a way that does not depend on the graph."""
    return np.sign(features) * np.log1p(np.abs(np.nan_to_num(features)))


def _assembled(
    nodes: NDArray, edges: NDArray, features: NDArray, ends: NDArray, values: ParameterValues
) -> GraphInputs:
    n = _bucket(len(nodes) + 1)  # at least one more node, for the edges of the padding
    spare = np.full((_bucket(len(edges)) - len(edges), 2), n - 1)
    d, c = -(-_bucket(len(features)) // SEGMENT) * SEGMENT, _bucket(len(values))
    return GraphInputs(
        nodes=padded(nodes, n).astype(np.float32),
        edges=np.concatenate([edges, spare]).astype(np.int32),
        features=padded(features, d).astype(np.float32),
        ends=padded(np.maximum(ends, 0), d).astype(np.int32),
        bound=padded(ends >= 0, d).astype(np.float32),
        real=np.arange(d) < len(features),
        parameter=padded(values.parameter, c).astype(np.int32),
        value=padded(values.bin, c).astype(np.int32),
        exists=np.arange(c) < len(values),
    )


def _bucket(n: int) -> int:
    """Return the length that shapes are padded to: one of 8 steps between powers of two.

    Tasks with equal padded shapes share their compiled code.
    """
    step = max(SEGMENT, 1 << max(0, n.bit_length() - 3))
    return max(1, -(-n // step)) * step


def random_policy(node_width: int, feature_width: int, rng: Generator, bound: float = BOUND) -> Policy:
    """Return a policy with random weights, drawn by numpy: JAX would compile its own generators for half a minute."""

    def fill(path: tuple[Any, ...], leaf: jax.ShapeDtypeStruct) -> NDArray[np.float32]:
        name = jax.tree_util.keystr(path)
        if "norm" in name:
            return np.full(leaf.shape, 1.0 if name.endswith("weight") else 0.0, np.float32)
        if name.endswith(("bias", "facts")):
            return np.zeros(leaf.shape, np.float32)
        bound = (0.1 if "out." in name or "values" in name else 1.0) / np.sqrt(leaf.shape[-1])
        return rng.uniform(-bound, bound, leaf.shape).astype(np.float32)

    return jax.tree_util.tree_map_with_path(fill, policy_shape(node_width, feature_width, bound))


def policy_shape(node_width: int, feature_width: int, bound: float) -> Policy:
    """Return a policy whose arrays have shapes but no content; to fill or to read weights into."""
    return eqx.filter_eval_shape(Policy, node_width, feature_width, jax.random.key(0), bound)


def save(policy: Policy, names: Names, path: Path) -> None:
    """Write a policy that takes features of some names.

    Raises:
      UserError: the file cannot be written.
    """
    FILE.save(path, {"nodes": names.nodes, "parameters": names.parameters}, parameters(policy))


def load(content: bytes, path: str, task: Task) -> tuple[Policy, Names]:
    """Return the policy that a file holds, and the names of its features.

    Raises:
      UserError: the file is not a policy, is of another version, is damaged, or does not know a feature of the task.
    """
    header, arrays = FILE.load(content, path)
    try:
        names = Names(*(tuple(map(str, header[side])) for side in ("nodes", "parameters")))
        policy = with_parameters(policy_shape(*names.widths, PRETRAINED_BOUND), arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise FILE.damaged(path, error) from None
    if unknown := names.unknown(task):
        reason = f"it does not know {unknown[0]!r}"
        raise UserError(f"policy {path} does not fit {task.problem}: {reason}; pretrain one on problems of that family")
    return policy, names
