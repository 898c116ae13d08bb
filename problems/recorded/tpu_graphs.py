"""TpuGraphs' npz files (Phothilimthana et al. 2023): tile sizes of one kernel, or layouts of one program, on a TPU."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Status

from .table import Codes, Outcomes, Recording, recording, with_default

_TILE = [f"{part} {i}" for part in ("kernel", "output", "input") for i in (*range(6), "sum", "product")]


def read(arrays: Mapping[str, NDArray]) -> Recording:
    """Return the recording of a tile or a layout file; run times are nanoseconds.

    Raises:
      ValueError: it is neither, or its arrays do not fit together.
    """
    if "config_feat" in arrays:
        return _tile(arrays)
    if "node_config_feat" in arrays:
        return _layout(arrays)
    raise ValueError(
        "it has neither 'config_feat' (tiles) nor 'node_config_feat' (layouts), so it is not from TpuGraphs"
    )


def _tile(arrays: Mapping[str, NDArray]) -> Recording:
    """Read tile sizes.

    Run times come from several machines, so each is divided by the run time of the default on the same machine. These
    ratios are multiplied by the median run time of the default. The default is the configuration whose ratio is nearest
    to 1. Sums and products of sizes are left out if the sizes alone distinguish all configurations.
    """
    features = _array(arrays, "config_feat", 2)
    runtime, default = (_array(arrays, key, 1) for key in ("config_runtime", "config_runtime_normalizers"))
    _fit(features, runtime, default)
    if (default <= 0).any():
        raise ValueError(f"'config_runtime_normalizers' of row {int(np.argmin(default))} is not positive")
    ratios = runtime / default
    width = features.shape[1]
    names = _TILE if width == len(_TILE) else [f"feature {i}" for i in range(width)]
    sizes = [i for i, name in enumerate(names) if not name.endswith(("sum", "product"))]
    if len(np.unique(features[:, sizes], axis=0)) < len(np.unique(features, axis=0)):
        sizes = list(range(width))
    seconds = ratios * float(np.median(default)) / 1e9
    facts = {"format": "TpuGraphs tile sizes", "default's run times": f"{np.median(default):,.0f} ns in the median"}
    result = recording([names[i] for i in sizes], [features[:, i] for i in sizes], _measured(seconds), facts=facts)
    place = int(np.abs(result.costs - np.median(default) / 1e9).argmin())
    return with_default(result, place, "the configuration whose run time is nearest to that of the compiler's default")


def _layout(arrays: Mapping[str, NDArray]) -> Recording:
    """Read layouts: one parameter per configurable node; its values are the vectors that occur.

    The default leaves every layout to the compiler (-1 everywhere), if that was measured.
    """
    features, runtime = _array(arrays, "node_config_feat", 3), _array(arrays, "config_runtime", 1)
    ids = _array(arrays, "node_config_ids", 1)
    _fit(features, runtime)
    if len(ids) != features.shape[1]:
        raise ValueError(f"'node_config_ids' has {len(ids)} nodes, 'node_config_feat' {features.shape[1]}")
    columns = [_vectors(features[:, node]) for node in range(len(ids))]
    names = [f"node {node}" for node in ids.tolist()]
    facts = {"format": "TpuGraphs layouts", "nodes configured": f"{len(ids):,}"}
    automatic = np.flatnonzero((features == -1).all(axis=(1, 2)))[:1]
    default = None
    if len(automatic):
        default = {name: c.values[int(c.indices[automatic[0]])] for name, c in zip(names, columns, strict=True)}
    return recording(names, columns, _measured(runtime / 1e9), default=default, facts=facts)


def _vectors(features: NDArray) -> Codes:
    """Return `(c, f)` vectors as codes of texts: minor-to-major orders of output, input and kernel."""
    plain = (features == np.floor(features)).all() and features.min() >= -1 and features.max() <= 6
    if plain and features.shape[1] <= 20:  # three bits a number: one integer identifies a vector
        keys = (features.astype(np.int64) + 1) @ (8 ** np.arange(features.shape[1], dtype=np.int64))
        _, first, indices = np.unique(keys, return_index=True, return_inverse=True)
        distinct = features[first]
    else:
        distinct, indices = np.unique(features, axis=0, return_inverse=True)
    words = [" ".join(f"{number:g}" for number in vector) for vector in distinct.tolist()]
    return Codes(indices.reshape(-1), words)


def _array(arrays: Mapping[str, NDArray], name: str, dimensions: int) -> NDArray:
    if name not in arrays:
        raise ValueError(f"it has no array {name!r}")
    array = np.asarray(arrays[name])
    if array.ndim != dimensions or not array.size:
        raise ValueError(f"array {name!r} has shape {array.shape}; it must have {dimensions} dimensions, none empty")
    if array.dtype.kind not in "iuf":
        raise ValueError(f"array {name!r} has type {array.dtype}, not numbers")
    if not np.isfinite(array).all():
        raise ValueError(f"array {name!r} holds NaN or infinity at {np.argwhere(~np.isfinite(array))[0].tolist()}")
    return array


def _fit(features: NDArray, *others: NDArray) -> None:
    if any(len(other) != len(features) for other in others):
        lengths = ", ".join(str(len(array)) for array in (features, *others))
        raise ValueError(f"its arrays of configurations and of run times differ in length: {lengths}")


def _measured(seconds: NDArray[np.float64]) -> Outcomes:
    if (seconds < 0).any():
        raise ValueError(f"'config_runtime' of row {int(seconds.argmin())} is negative")
    return Outcomes(seconds, np.full(len(seconds), Status.OK, np.int8), [""] * len(seconds))
