"""Lowers the programs that ship: `python -m bbo_problems.xla_passes.make_programs`.

Each is one training step at batch size 1: of GPT-2 and BERT base with one or two layers, and of the smallest ResNets.
Other sizes than the depth hardly change what passes can do.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import partial

from ..tensor_compiler.models import Program, bert, gpt2, resnet
from ..tensor_compiler.models.lower import hlo_text
from .programs import FOLDER

_resnet = partial(resnet.build, batch=1, bottleneck=False, training=True)
PROGRAMS: dict[str, Callable[[], Program]] = {
    "gpt2-l1": partial(gpt2.build, batch=1, sequence=128, depth=1),
    "gpt2-l2": partial(gpt2.build, batch=1, sequence=128, depth=2),
    "bert-l1": partial(bert.build, batch=1, depth=1),
    "bert-l2": partial(bert.build, batch=1, depth=2),
    "resnet-10": partial(_resnet, depths=(1, 1, 1, 1)),
    "resnet-18": partial(_resnet, depths=(2, 2, 2, 2)),
}

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, build in PROGRAMS.items():
        (FOLDER / f"{name}.hlo.gz").write_bytes(gzip.compress(hlo_text(build()).encode(), mtime=0))
