"""Learned cost models of kernels: their network, what they predict, in batches of few shapes, and their files.

Kernels are embedded by GraphSAGE, and heads predict their times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

from bbo_suite.files.arrays import ArrayFile
from bbo_suite.nets import MeanSage, averages, dense, filter_jit, linear_layers, padded, parameters, with_parameters

from ..tensor_compiler.hardware.all_settings import times
from ..tensor_compiler.hardware.machine import KERNEL_TIMES, Machine
from .kernels import KERNEL_FEATURES, NODE_FEATURES, OPCODES, Batch, KernelGraphs, batched, features, pad

WIDTH = 48
_OPCODE_WIDTH = 16
_LAYERS = 3
_HIDDEN = 64
RANKED = 10.0
"""What a score that is only ranked starts from: this many times the log of a time."""
REDUCTIONS = ("mean", "max", "sum", "lstm", "transformer")
"""How the embeddings of a kernel's operations become one of the kernel."""
GRAPH_KINDS, SETTING_KINDS = ("graph",), ("tiles", "flags")
"""What a network may predict: times of whole kernels, or of their tiles and flags, in an order within each kernel."""
_HEADS = 4
_TYPICAL = 8.0  # operations; sums are divided by it


class Reduction(eqx.Module):
    """One of `REDUCTIONS`; nodes are in topological order, which only the LSTM sees."""

    kind: str = eqx.field(static=True)
    cell: eqx.nn.LSTMCell | None
    attention: eqx.nn.MultiheadAttention | None

    def __init__(self, kind: str, width: int, key: Array) -> None:
        self.kind = kind
        self.cell = eqx.nn.LSTMCell(width, width, key=key) if kind == "lstm" else None
        self.attention = eqx.nn.MultiheadAttention(_HEADS, width, key=key) if kind == "transformer" else None

    def __call__(self, h: Array, real: Array) -> Array:
        """Return `(b, width)` embeddings of kernels from `(b, n, width)` of their nodes, of which `(b, n)` are real."""
        if self.cell is not None:
            return jax.vmap(self._last)(h, real)
        if self.attention is not None:
            h = h + jax.vmap(self._attend)(h, real)
        shown = jnp.where(real[:, :, None], h, 0.0)
        if self.kind == "max":
            return jnp.where(real[:, :, None], h, -1e9).max(axis=1, initial=-10.0)
        total = shown.sum(axis=1)
        return total / _TYPICAL if self.kind == "sum" else total / jnp.maximum(real.sum(axis=1, keepdims=True), 1)

    def _attend(self, h: Array, real: Array) -> Array:
        assert self.attention is not None
        mask = jnp.broadcast_to(real[None, :] | ~real.any(), (len(h), len(h)))
        return self.attention(h, h, h, mask=mask)

    def _last(self, h: Array, real: Array) -> Array:
        """Return the state of the LSTM after the last real node."""

        def step(state: tuple[Array, Array], row: tuple[Array, Array]) -> tuple[tuple[Array, Array], None]:
            assert self.cell is not None
            value, is_real = row
            new = self.cell(value, state)
            return (jnp.where(is_real, new[0], state[0]), jnp.where(is_real, new[1], state[1])), None

        start = (jnp.zeros(h.shape[1]), jnp.zeros(h.shape[1]))
        return jax.lax.scan(step, start, (h, real))[0][0]


class Encoder(eqx.Module):
    """Embeds the graph of a kernel."""

    opcode: Array
    first: eqx.nn.Linear
    layers: list[MeanSage]
    reduction: Reduction

    def __init__(self, reduction: str, key: Array) -> None:
        keys = jax.random.split(key, _LAYERS + 3)
        self.opcode = 0.1 * jax.random.normal(keys[0], (len(OPCODES), _OPCODE_WIDTH))
        self.first = eqx.nn.Linear(_OPCODE_WIDTH + len(NODE_FEATURES), WIDTH, key=keys[1])
        self.layers = [MeanSage(WIDTH, k) for k in keys[3:]]
        self.reduction = Reduction(reduction, WIDTH, keys[2])

    def __call__(self, opcodes: Array, nodes: Array, real: Array, edges: Array) -> Array:
        """Return `(b, WIDTH)` embeddings of a batch; see `Batch`."""
        h = jax.nn.relu(dense(self.first, jnp.concatenate([self.opcode[opcodes], nodes], axis=2)))
        below, above = averages(edges, h.shape[1])
        for layer in self.layers:
            h = layer(h, below, above)
        return self.reduction(h, real)


class Head(eqx.Module):
    """Adds to the log of the analytical model's estimate what it gets wrong."""

    layers: tuple[eqx.nn.Linear, ...]
    scale: Array

    def __init__(self, scale: float, key: Array) -> None:
        self.layers = linear_layers((WIDTH + len(KERNEL_FEATURES), _HIDDEN, _HIDDEN, 1), key)
        self.scale = jnp.log(jnp.array(scale))

    def __call__(self, embedding: Array, features: Array, logs: Array) -> Array:
        """Return scores `(...,)` from `(..., WIDTH)` embeddings, `(..., f)` features, and logs of the estimates."""
        h = jnp.concatenate([embedding, features], axis=-1)
        for layer in self.layers[:-1]:
            h = jax.nn.relu(dense(layer, h))
        return jnp.exp(self.scale) * (logs + dense(self.layers[-1], h)[..., 0])


class Standard(eqx.Module):
    """Means and deviations of features in the training data; they are not trained."""

    mean: Array
    deviation: Array

    @classmethod
    def of(cls, rows: NDArray[np.float32]) -> Standard:
        """Return those of `(m, f)` rows; a feature that never changes is left as it is."""
        deviation = rows.std(axis=0)
        return cls(jnp.asarray(rows.mean(axis=0)), jnp.asarray(np.where(deviation > 1e-6, deviation, 1.0)))

    def __call__(self, rows: Array) -> Array:
        """Return features of mean 0 and deviation 1, cut off where no training data is near."""
        mean, deviation = jax.lax.stop_gradient((self.mean, self.deviation))
        return jnp.clip((rows - mean) / deviation, -4.0, 4.0)


class Network(eqx.Module):
    """An encoder and the heads that share it, by what they predict: `GRAPH_KINDS`, or `SETTING_KINDS`."""

    nodes: Standard
    kernels: Standard
    encoder: Encoder
    heads: dict[str, Head]

    def __init__(
        self,
        nodes: Standard,
        kernels: Standard,
        kinds: tuple[str, ...],
        reduction: str,
        key: Array,
        scale: float = 1.0,
    ) -> None:
        first, *keys = jax.random.split(key, 1 + len(kinds))
        self.nodes, self.kernels, self.encoder = nodes, kernels, Encoder(reduction, first)
        self.heads = {kind: Head(scale, k) for kind, k in zip(kinds, keys, strict=True)}

    def embed(self, batch: Batch) -> Array:
        """Return `(b, WIDTH)` embeddings of kernels."""
        opcodes, nodes, real, edges = map(jnp.asarray, batch)
        return self.encoder(opcodes, self.nodes(nodes), real, edges)

    def score(self, kind: str, embedding: Array, features: Array, estimates: Array) -> Array:
        """Return `(b, c)` scores of c settings each: the log of the seconds, or for relative models an order.

        Args:
          embedding: `(b, WIDTH)`.
          features: `(b, c, f)` of the kernels with the settings.
          estimates: `(b, c)` logs of the analytical model's seconds.
        """
        wide = jnp.broadcast_to(embedding[:, None], (*features.shape[:2], embedding.shape[1]))
        return self.heads[kind](wide, self.kernels(features), estimates)


_FILE = ArrayFile(
    "learned cost model",
    1,
    "train one with `python -m bbo_problems.learned train`",
    {
        "cost model": KERNEL_TIMES,
        "width": WIDTH,
        "opcodes": len(OPCODES),
        "node features": len(NODE_FEATURES),
        "kernel features": len(KERNEL_FEATURES),
    },
)
_ROWS = 4096
"""Settings that are scored at a time."""


@dataclass(frozen=True)
class CostModel:
    """The three models of kernels: of the graph-level passes, absolute; of tiles and of flags, relative.

    Attributes:
      machine: what it predicts for.
      programs: what it was trained on.
      reduction: of both networks.
      absolute: the network of the graph-level passes.
      relative: the network of tiles and flags, which share the embedding.
      slopes: the log of a time that one unit of the score of tiles, and of flags, stands for.
    """

    machine: str
    programs: tuple[str, ...]
    reduction: str
    absolute: Network
    relative: Network
    slopes: NDArray[np.float64]


def save(model: CostModel, path: Path) -> None:
    """Write a model.

    Raises:
      UserError: the file cannot be written.
    """
    header = {"machine": model.machine, "programs": model.programs, "reduction": model.reduction}
    _FILE.save(path, header, {"slopes": model.slopes, **parameters((model.absolute, model.relative))})


def load(data: bytes, name: str) -> CostModel:
    """Return the model that a file holds.

    Args:
      data: its content.
      name: its path, for messages.

    Raises:
      UserError: it is not a model, is of another version, or its numbers do not fit its header or are not finite.
    """
    header, arrays = _FILE.load(data, name)
    try:
        return _model(header, arrays)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise _FILE.damaged(name, error) from None


def _model(header: Mapping[str, Any], arrays: dict[str, NDArray]) -> CostModel:
    machine, reduction = header["machine"], header["reduction"]
    if reduction not in REDUCTIONS or not isinstance(machine, str):
        raise ValueError("its header has no such reduction or machine")
    slopes = arrays.pop("slopes").astype(np.float64)
    if slopes.shape != (2,) or not np.isfinite(slopes).all():
        raise ValueError("it needs two slopes")
    shapes = tuple(_shape(kinds, reduction) for kinds in (GRAPH_KINDS, SETTING_KINDS))
    absolute, relative = with_parameters(shapes, arrays)
    return CostModel(machine, tuple(map(str, header["programs"])), reduction, absolute, relative, slopes)


def _shape(kinds: tuple[str, ...], reduction: str) -> Network:
    standards = [Standard(jnp.zeros(n), jnp.ones(n)) for n in (len(NODE_FEATURES), len(KERNEL_FEATURES))]
    return eqx.filter_eval_shape(Network, *standards, kinds, reduction, jax.random.key(0))


def embeddings(network: Network, graphs: KernelGraphs) -> NDArray[np.float32]:
    """Return `(k, WIDTH)` embeddings of kernels."""
    found = np.empty((len(graphs), WIDTH), np.float32)
    for kernels in batched(graphs):
        found[kernels] = np.asarray(_embed(network, pad(graphs, kernels)))[: len(kernels)]
    return found


def scores(
    network: Network,
    kind: str,
    embedded: NDArray[np.float32],
    rows: NDArray[np.float32],
    estimates: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return `(s,)` scores of settings.

    Args:
      embedded: `(s, WIDTH)` of their kernels.
      rows: `(s, f)` features.
      estimates: `(s,)` seconds by the analytical model.
    """
    found, logs = np.empty(len(rows)), np.log(estimates).astype(np.float32)
    for start in range(0, len(rows), _ROWS):
        part = slice(start, start + _ROWS)
        arrays = (padded(array[part], _ROWS) for array in (embedded, rows, logs))
        found[part] = np.asarray(_score(network, kind, *arrays))[: len(found[part])]
    return found


def relative_scores(
    model: CostModel,
    kind: str,
    rows: NDArray[np.float64],
    embedded: NDArray[np.float32],
    settings: NDArray[np.float64],
    machine: Machine,
) -> NDArray[np.float64]:
    """Return `(s,)` scores of tiles or flags, by which those of a kernel are ranked: the lowest is the fastest.

    Args:
      kind: of `SETTING_KINDS`.
      rows: `(s, KERNEL_WIDTH)` the kernel of each setting.
      embedded: `(s, WIDTH)` of these by the relative network.
      settings: `(s, 9)` in the order of `SLOTS`.
      machine: that of the model; its analytical model gives the estimates.
    """
    estimates = times(rows, np.arange(len(rows)), settings, machine.analytical_model())
    estimates = np.where(np.isfinite(estimates), estimates, 1.0)  # it overflows: its score is not used
    described = features(rows, settings.astype(np.float32), estimates, model.machine)
    return scores(model.relative, kind, embedded, described, estimates)


@filter_jit
def _embed(network: Network, batch: Batch) -> Array:
    return network.embed(batch)


@filter_jit
def _score(network: Network, kind: str, embedded: NDArray, rows: NDArray, logs: NDArray) -> Array:
    return network.score(kind, jnp.asarray(embedded), jnp.asarray(rows)[:, None], jnp.asarray(logs)[:, None])[:, 0]
