"""Learned cost models of kernels: what they predict, in batches of few shapes, and their files."""

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
from bbo_suite.nets import filter_jit, padded, parameters, with_parameters

from ..tensor_compiler.hardware.machine import KERNEL_TIMES
from .kernels import KERNEL_FEATURES, NODE_FEATURES, OPCODES, Batch, KernelGraphs, batched, pad
from .network import GRAPH_KINDS, REDUCTIONS, SETTING_KINDS, WIDTH, Network, Standard

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


@filter_jit
def _embed(network: Network, batch: Batch) -> Array:
    return network.embed(batch)


@filter_jit
def _score(network: Network, kind: str, embedded: NDArray, rows: NDArray, logs: NDArray) -> Array:
    return network.score(kind, jnp.asarray(embedded), jnp.asarray(rows)[:, None], jnp.asarray(logs)[:, None])[:, 0]
