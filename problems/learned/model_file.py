"""Learned cost models in files: a header in JSON, and the numbers of the networks as arrays without pickles."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bbo_suite import UserError

from ..tensor_compiler.hardware.machine import COST_MODEL
from .dataset import read_arrays, read_header
from .features import KERNEL_FEATURES
from .kernels import NODE_FEATURES, OPCODES
from .layers import REDUCTIONS
from .network import WIDTH, Network, Standard
from .training import GRAPH, RELATIVE

VERSION = 1
"""Version of the networks: raised whenever their layers or the meaning of their inputs change."""
_AGAIN = "train one with `python -m bbo_problems.learned train`"


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
    header = {**_needs(), "machine": model.machine, "programs": model.programs, "reduction": model.reduction}
    leaves = [*_leaves(model.absolute), *_leaves(model.relative)]
    numbers = {f"{i}": np.asarray(leaf, np.float32) for i, leaf in enumerate(leaves)}
    packed = io.BytesIO()
    np.savez_compressed(packed, header=np.array(json.dumps(header)), slopes=model.slopes, **numbers)  # type: ignore[arg-type]
    try:
        path.write_bytes(packed.getvalue())
    except OSError as error:
        raise UserError(f"model {path} cannot be written: {error.strerror}") from None


def load(data: bytes, name: str) -> CostModel:
    """Return the model that a file holds. Only numbers and JSON are read, so no code of the file can run.

    Args:
      data: its content.
      name: its path, for messages.

    Raises:
      UserError: it is not a model, is of another version, or its numbers do not fit its header or are not finite.
    """
    arrays = read_arrays(name, data)
    header = read_header(arrays, name, f"a learned cost model; {_AGAIN}")
    for key, value in _needs().items():
        if header.get(key) != value:
            raise UserError(f"model {name} has {key} {header.get(key)}, but {value} is needed; {_AGAIN}")
    try:
        model = _model(header, arrays)
    except (KeyError, ValueError, TypeError, AttributeError):
        raise UserError(f"model {name} holds other numbers than its header says; {_AGAIN}") from None
    return model


def _needs() -> dict[str, Any]:
    inputs = {"opcodes": len(OPCODES), "node features": len(NODE_FEATURES), "kernel features": len(KERNEL_FEATURES)}
    return {"kind": "learned cost model", "version": VERSION, "cost model": COST_MODEL, "width": WIDTH, **inputs}


def _leaves(network: Network) -> list[Any]:
    return jax.tree.leaves(eqx.filter(network, eqx.is_array))


def _model(header: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> CostModel:
    if header["reduction"] not in REDUCTIONS or not isinstance(header["machine"], str):
        raise ValueError
    leaves = iter([arrays[f"{i}"] for i in range(len(arrays) - 2)])
    absolute, relative = (_network(kinds, header["reduction"], leaves) for kinds in (GRAPH.kinds, RELATIVE.kinds))
    slopes = arrays["slopes"].astype(np.float64)
    if slopes.shape != (2,) or not np.isfinite(slopes).all() or next(leaves, None) is not None:
        raise ValueError
    return CostModel(
        header["machine"], tuple(map(str, header["programs"])), header["reduction"], absolute, relative, slopes
    )


def _network(kinds: tuple[str, ...], reduction: str, leaves: Any) -> Network:  # noqa: ANN401 - an iterator
    """Return a network with the next leaves as its numbers."""
    standards = [Standard(jnp.zeros(n), jnp.ones(n)) for n in (len(NODE_FEATURES), len(KERNEL_FEATURES))]
    empty = eqx.filter_eval_shape(Network, *standards, kinds, reduction, jax.random.key(0))

    def filled(shape: Any) -> Any:  # noqa: ANN401
        leaf = next(leaves, None)
        if leaf is None or leaf.shape != shape.shape or leaf.dtype != np.float32 or not np.isfinite(leaf).all():
            raise ValueError
        return jnp.asarray(leaf)

    return jax.tree.map(filled, empty)
