"""The real compiler as a supervised child process, with its results cached on disk."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import select
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bbo_suite.core.libraries import require
from bbo_suite.files.cache import cache_folder

TIMEOUT = 600.0
"""Seconds that one program may take to compile."""

_SHARDING = re.compile(r", sharding=\{(?:[^{}]|\{[^{}]*\})*\}")
"""One core runs the whole program."""

# The settings describe one chip, so none is searched for; several processes may load the compiler.
ENVIRONMENT = {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
}
TOPOLOGIES = {"v2": "2x2", "v3": "2x2", "v4": "2x2x1", "v5e": "2x2", "v5p": "2x2x1", "v6e": "1x1"}


class Compiler:
    """Compiles programs one by one; restarts its child process if that has aborted or hangs.

    Args:
      cache: folder of the results.
      worker: the module that the child process runs; as a script, it calls `answer`.
      seconds: that one program may take.
    """

    def __init__(
        self, cache: Path | None = None, worker: str = f"{__package__}.compiler", seconds: float = TIMEOUT
    ) -> None:
        require("libtpu", "XLA:TPU", "bbo_suite[tpu]")
        self._worker, self._seconds = worker, seconds
        self._cache = cache or cache_folder(f"xla-tpu-{version('libtpu')}")
        self._child: subprocess.Popen[str] | None = None

    def text(self, name: str, machine: str) -> str:
        """Return the scheduled HLO text of a program; its first line holds the totals, as a comment.

        Args:
          name: of a program of the catalogue, or the path of a file of HLO text.
          machine: one of `TOPOLOGIES`.

        Raises:
          RuntimeError: it cannot be compiled, as the compiler says.
        """
        path = self._cache / machine / f"{_key(name)}.hlo.gz"
        failed = path.with_suffix(".error")
        if failed.exists():
            raise RuntimeError(failed.read_text())
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(f".{os.getpid()}")
            if error := self._ask({"name": name, "machine": machine, "path": str(partial)}):
                failed.write_text(error)
                raise RuntimeError(error)
            partial.replace(path)
        return gzip.decompress(path.read_bytes()).decode()

    def close(self) -> None:
        """End the child."""
        if self._child:
            self._child.kill()
            self._child.communicate()
            self._child = None

    def _ask(self, request: dict[str, str]) -> str:
        """Return the error of one compilation, empty if it went well."""
        child = self._child if self._child and self._child.poll() is None else self._started()
        assert child.stdin and child.stdout
        child.stdin.write(json.dumps(request) + "\n")
        child.stdin.flush()
        ready, _, _ = select.select([child.stdout], [], [], self._seconds)
        line = child.stdout.readline() if ready else ""
        if line:
            return str(json.loads(line)["error"])
        self.close()
        return "the compiler aborted" if ready else f"no answer in {self._seconds:.0f} s"

    def _started(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", self._worker]
        pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
        environment = os.environ | ENVIRONMENT
        self._child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=quiet, text=True, env=environment)
        return self._child


def _key(name: str) -> str:
    """Return the name under which a result is kept: a file's has its content."""
    file = Path(name)
    if not file.is_file():
        return name
    return f"{file.name.partition('.hlo')[0]}-{hashlib.sha256(file.read_bytes()).hexdigest()[:16]}"


def device_of(machine: str) -> Any:  # noqa: ANN401 - a sharding of JAX
    """Return one core of a machine, as the place of a program's arrays."""
    from jax.experimental import topologies
    from jax.sharding import SingleDeviceSharding

    topology = topologies.get_topology_desc(platform="tpu", topology_name=f"{machine}:{TOPOLOGIES[machine]}")
    return SingleDeviceSharding(topology.devices[0])


def compiled(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    machine: str,
    flags: dict[str, str | bool] | None = None,
) -> tuple[str, dict[str, float]]:
    """Return the scheduled HLO text of a program for one core of a machine, and its flops and bytes in all."""
    import jax

    sharding = device_of(machine)
    placed = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding), arguments)
    done = jax.jit(function).lower(*placed).compile(compiler_options=flags)
    jax.clear_caches()
    analysis = done.cost_analysis() or {}
    return done.as_text() or "", {key: analysis.get(key, 0.0) for key in ("flops", "bytes accessed")}


def of_catalogue(name: str, machine: str) -> tuple[str, dict[str, float]]:
    """Return what `compiled` does for a program of the catalogue, or for a file of HLO text, without totals."""
    from .programs import program

    return (_of_file(Path(name), machine), {}) if Path(name).is_file() else compiled(*program(name), machine)


def _of_file(path: Path, machine: str) -> str:
    from jax._src.interpreters import mlir
    from jaxlib import _jax

    from ..hlo import reader, xla

    text = _SHARDING.sub("", reader.read_text(path))
    with mlir.make_ir_context():
        module = mlir.ir.Module.parse(xla.stablehlo(text))
    (device,) = device_of(machine).device_set
    done = device.client.compile(module, _jax.DeviceList((device,)), _jax.CompileOptions())
    return str(done.hlo_modules()[0].to_string())


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
