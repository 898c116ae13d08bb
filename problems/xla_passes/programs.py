"""Programs in HLO text: a few small ones ship, the others are lowered when first used."""

from __future__ import annotations

from pathlib import Path

from ..tensor_compiler.models.catalogue import LAYERED
from ..tensor_compiler.tasks.programs import program

FOLDER = Path(__file__).parent / "programs"
FULL = (
    "gpt2-124m-train-b8-s1024",
    "gpt2-355m-train-b4-s1024",
    "bert-base-train-b32-s128",
    "bert-large-train-b16-s128",
    "resnet-18-train-b64",
    "resnet-50-train-b32",
    "resnet-101-train-b32",
)
"""Programs of the tensor compiler with different numbers of operations; a candidate takes seconds to a minute."""


def names() -> tuple[str, ...]:
    """Return the names of all programs, those that ship first."""
    shipped = sorted(path.name.removesuffix(".hlo.gz") for path in FOLDER.glob("*.hlo.gz"))
    return (*shipped, *(name for name in LAYERED if name not in shipped), *FULL)


def named(name: str) -> Path:
    """Return the file of a program's HLO text."""
    shipped = FOLDER / f"{name}.hlo.gz"
    return shipped if shipped.exists() else program(name)
