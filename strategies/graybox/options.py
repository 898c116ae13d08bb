"""Options of `graybox`, which its parts read, too."""

from __future__ import annotations

from dataclasses import dataclass

from bbo_suite import option
from bbo_suite.core.versions import PinnedFile


@dataclass(frozen=True)
class GrayBoxOptions:
    """Options of `graybox`."""

    sweeps: float = option(
        2.0, "parts priced for each candidate, in turns of all single changes, but at most 100,000", low=0, high=1000
    )
    heat: float = option(1.0, "initial temperature, in mean cost differences of a virtual step", low=0, high=100)
    explore: float = option(0.1, "share of candidates that prefer parts of which models are unsure", low=0, high=1)
    models: bool = option(True, "predict parts that are not measured; else they cost what the compiler estimates")
    memory: bool = option(True, "remember what parts cost; else all are predicted")
    draws: bool = option(True, "draw predictions with their uncertainty (Thompson sampling)")
    estimate: bool = option(True, "use the compiler's own estimate of a part, where the task declares one")
    describe: bool = option(True, "use what the task declares about parts; else only the costs that evaluations tell")
    pretrained: PinnedFile = option(PinnedFile(), "file of parts to know from the start, by `pretrain`", added=True)  # noqa: RUF009
