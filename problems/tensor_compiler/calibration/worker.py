"""The process that compiles: reads a request for a program and a machine per line, and writes a line per result.

The compiler can abort, so it runs in a process of its own.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# The settings describe one chip, so none is searched for; several processes may load the compiler.
ENVIRONMENT = {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
}
TOPOLOGIES = {"v2": "2x2", "v3": "2x2", "v4": "2x2x1", "v5e": "2x2", "v5p": "2x2x1", "v6e": "1x1"}


def compiled(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    machine: str,
    flags: dict[str, str | bool] | None = None,
) -> tuple[str, dict[str, float]]:
    """Return the scheduled HLO text of a program for one core of a machine, and its flops and bytes in all."""
    import jax
    from jax.experimental import topologies
    from jax.sharding import SingleDeviceSharding

    topology = topologies.get_topology_desc(platform="tpu", topology_name=f"{machine}:{TOPOLOGIES[machine]}")
    sharding = SingleDeviceSharding(topology.devices[0])
    placed = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding), arguments)
    done = jax.jit(function).lower(*placed).compile(compiler_options=flags)
    jax.clear_caches()
    analysis = done.cost_analysis() or {}
    return done.as_text() or "", {key: analysis.get(key, 0.0) for key in ("flops", "bytes accessed")}


def of_catalogue(name: str, machine: str) -> tuple[str, dict[str, float]]:
    """Return what `compiled` does for a program of the catalogue."""
    from .catalogue import program

    return compiled(*program(name), machine)


def answer(compile: Callable[[str, str], tuple[str, dict[str, float]]]) -> None:
    """Answer requests `{"name", "machine", "path"}` until the input ends; the text goes to the path, gzipped."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # so that output of the compiler does not mix with the answers
    for line in sys.stdin:
        request = json.loads(line)
        try:
            text, totals = compile(request["name"], request["machine"])
            Path(request["path"]).write_bytes(gzip.compress(f"// {json.dumps(totals)}\n{text}".encode(), 5, mtime=0))
            answer = {"error": ""}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    answer(of_catalogue)
