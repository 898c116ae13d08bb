"""Predictors in files: numpy's .npz with a header and weights, and no pickle, so that reading one runs no code."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bbo_suite import UserError
from bbo_suite.files.reading import parse_json

from .predictor import NETWORKS, Predictor

VERSION = 1
"""Raised whenever a network, or the meaning of its inputs, changes."""
_MANY = 1000
_LARGEST = 1 << 26
"""Most bytes of all arrays of a file."""


@dataclass(frozen=True)
class Model:
    """A predictor and what it was trained on.

    Attributes:
      names: the features that a task must declare.
      places: the most parameters of a group.
    """

    predictor: Predictor
    names: tuple[str, ...]
    places: int


def save(predictor: Predictor, architecture: str, names: tuple[str, ...], path: Path) -> None:
    """Write a predictor, with weights of 16 bits.

    Raises:
      UserError: the file cannot be written.
    """
    header = {"one-shot": VERSION, "architecture": architecture, "features": names, "places": predictor.places}
    arrays: dict[str, Any] = {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
    arrays |= {str(i): np.asarray(leaf, _stored_type(leaf)) for i, leaf in enumerate(jax.tree.leaves(predictor))}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    try:
        path.write_bytes(buffer.getvalue())
    except OSError as error:
        raise UserError(f"model {path} cannot be written: {error.strerror}") from None


def _stored_type(leaf: Any) -> type:  # noqa: ANN401 - an array of JAX
    """Return 16 bits for matrices of weights; scales of inputs may need more range."""
    return np.float16 if leaf.ndim > 1 and leaf.shape[0] > 2 else np.float32


def load(content: bytes, path: str) -> Model:
    """Return the model that a file holds.

    Checked are the header, and the number, shapes, types and values of all arrays. Nothing in the file is executed.

    Raises:
      UserError: the file is no model, is of another version, or is damaged.
    """
    header, arrays = _read(content, path)
    if header["one-shot"] != VERSION:
        raise UserError(
            f"model {path} has version {header['one-shot']}, but version {VERSION} is needed; pretrain it again"
        )
    names: Any = header.get("features")
    places, architecture = header.get("places"), header.get("architecture")
    named = isinstance(names, list) and all(isinstance(name, str) for name in names) and 0 < len(names) < _MANY
    if not named or not isinstance(places, int) or not 0 < places < _MANY or architecture not in NETWORKS:
        raise UserError(f"model {path} is damaged; pretrain it again")
    shape = eqx.filter_eval_shape(Predictor.random, architecture, len(names), places, jax.random.key(0))
    leaves = [arrays.pop(str(i), None) for i in range(len(jax.tree.leaves(shape)))]
    if arrays or not all(map(_fits, leaves, jax.tree.leaves(shape))):
        raise UserError(f"model {path} holds other weights than its header says; pretrain it again")
    weights = [jnp.asarray(leaf, jnp.float32) for leaf in leaves]
    return Model(jax.tree.unflatten(jax.tree.structure(shape), weights), tuple(names), places)


def _fits(array: NDArray | None, wanted: Any) -> bool:  # noqa: ANN401 - the shape of an array of JAX
    """Return whether an array may be one of the weights: no other shape or type, and all numbers finite."""
    if array is None or array.shape != wanted.shape or array.dtype != _stored_type(wanted):
        return False
    return bool(np.isfinite(array).all())


def _read(content: bytes, path: str) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """Return the header and the arrays of a file."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            if sum(entry.file_size for entry in packed.infolist()) > _LARGEST:
                raise ValueError("too large")
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = parse_json(arrays.pop("header").tobytes())
        if not isinstance(header, dict) or "one-shot" not in header:
            raise ValueError("no header")
    except Exception:  # whatever a file that somebody wrote by hand makes zipfile and numpy raise
        raise UserError(f"{path} is not a model of one-shot; make one with `python -m bbo_suite pretrain`") from None
    return header, arrays
