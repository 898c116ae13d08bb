"""The programs of the tasks: a few ship as HLO text, the others are lowered from their models on first use."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from bbo_suite.errors import UserError, did_you_mean
from bbo_suite.files.cache import cache_folder
from bbo_suite.files.writing import replacing
from bbo_suite.supervised.temporary import TemporaryFolder

from ..hlo.passes import RECIPE
from ..models import LOWERED, SHIPPED
from ..models.catalogue import LAYERED, PROGRAMS

_COMPILER = __package__.rpartition(".")[0]


def names() -> tuple[str, ...]:
    """Return the names of the programs of tasks; those that ship come first."""
    shipped = sorted(path.name.removesuffix(".hlo.gz") for path in SHIPPED.glob("*.hlo.gz"))
    return (*shipped, *(name for name in PROGRAMS if name not in shipped))


def program(name: str) -> Path:
    """Return the file with a program's HLO text after XLA's own passes.

    A program that does not ship is lowered once per version of JAX.

    Raises:
      UserError: there is no such program, or it cannot be lowered or stored.
    """
    return _file(name, Path())


def lowered(name: str) -> Path:
    """Return the file with a program's HLO text as JAX lowers it; errors as of `program`."""
    return _file(name, Path(LOWERED))


def _file(name: str, folder: Path) -> Path:
    if name not in (known := (*names(), *LAYERED)):
        raise UserError(f"there is no program {name!r}.{did_you_mean(name, known)}")
    if (shipped := SHIPPED / folder / f"{name}.hlo.gz").exists():
        return shipped
    cache = cache_folder(f"programs-jax-{version('jax')}-jaxlib-{version('jaxlib')}-passes-{RECIPE}")
    if not (cached := cache / folder / f"{name}.hlo.gz").exists():
        try:
            _lower(name, cache)
        except OSError as error:
            raise UserError(
                f"cannot store the program {name} in {cache}: {error.strerror}; set XDG_CACHE_HOME"
            ) from None
    return cached


def _lower(name: str, cache: Path) -> None:
    """Lower in a process of its own, because JAX is heavy and an evaluation does not need it."""
    with TemporaryFolder() as folder:
        command = [sys.executable, "-m", f"{_COMPILER}.models.lower", name, "--out", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"JAX_PLATFORMS": "cpu"})
        if done.returncode:
            reason = (done.stderr.strip() or "no reason given").splitlines()[-1]
            raise UserError(f"the program {name} cannot be lowered ({reason}); is jax {version('jax')} sound?")
        for part in (Path(LOWERED), Path()):
            target = cache / part / f"{name}.hlo.gz"
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target) as unfinished:
                shutil.copyfile(folder / part / target.name, unfinished)
