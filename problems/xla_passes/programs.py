"""Programs in HLO text: small ones that ship, and full ones that are lowered when first used."""

from __future__ import annotations

from pathlib import Path

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
    return (*sorted(path.name.removesuffix(".hlo.gz") for path in FOLDER.glob("*.hlo.gz")), *FULL)


def named(name: str) -> Path:
    """Return the file of a program's HLO text."""
    return program(name) if name in FULL else FOLDER / f"{name}.hlo.gz"
