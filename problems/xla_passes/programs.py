"""Programs in HLO text: a few small ones ship, the others are lowered when first used.

`python -m bbo_problems.xla_passes.programs` lowers those that ship. Each is one training step at batch size 1: of GPT-2
and BERT base with one or two layers, and of the smallest ResNets. Other sizes than the depth hardly change what passes
can do.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ..tensor_compiler.models import Program, build_model
from ..tensor_compiler.models.catalogue import LAYERED
from ..tensor_compiler.tasks.programs import lowered

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
    return shipped if shipped.exists() else lowered(name)


_resnet = partial(build_model, "resnet", batch=1, bottleneck=False, training=True)
_SHIPPED: dict[str, Callable[[], Program]] = {
    "gpt2-l1": partial(build_model, "gpt2", batch=1, sequence=128, depth=1),
    "gpt2-l2": partial(build_model, "gpt2", batch=1, sequence=128, depth=2),
    "bert-l1": partial(build_model, "bert", batch=1, depth=1),
    "bert-l2": partial(build_model, "bert", batch=1, depth=2),
    "resnet-10": partial(_resnet, depths=(1, 1, 1, 1)),
    "resnet-18": partial(_resnet, depths=(2, 2, 2, 2)),
}


def main() -> None:
    """Lower the programs that ship."""
    from ..tensor_compiler.models.lower import hlo_text  # it imports JAX

    FOLDER.mkdir(exist_ok=True)
    for name, build in _SHIPPED.items():
        (FOLDER / f"{name}.hlo.gz").write_bytes(gzip.compress(hlo_text(build()).encode(), mtime=0))


if __name__ == "__main__":
    main()
