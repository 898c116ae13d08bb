"""The real compiler as a supervised child process, with its results kept on disk."""

from __future__ import annotations

import gzip
import json
import os
import select
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from bbo_suite.files.cache import cache_folder
from bbo_suite.libraries import require

from .worker import ENVIRONMENT

TIMEOUT = 600.0
"""Seconds that one program may take to compile."""


class Compiler:
    """Compiles programs one by one; restarts its child process if that has aborted or hangs.

    Args:
      cache: folder of the results.
      worker: the module that the child process runs, like `worker`.
      seconds: that one program may take.
    """

    def __init__(
        self, cache: Path | None = None, worker: str = f"{__package__}.worker", seconds: float = TIMEOUT
    ) -> None:
        require("libtpu", "XLA:TPU", "bbo_suite[tpu]")
        self._worker, self._seconds = worker, seconds
        self._cache = cache or cache_folder(f"xla-tpu-{version('libtpu')}")
        self._child: subprocess.Popen[str] | None = None

    def text(self, name: str, machine: str) -> str:
        """Return the scheduled HLO text of a program; its first line holds the totals, as a comment.

        Raises:
          RuntimeError: it cannot be compiled, as the compiler says.
        """
        path = self._cache / machine / f"{name}.hlo.gz"
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
