"""The searches of published compilers and tuners by name, each a mechanism with the settings of its public code."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import ClassVar

from numpy.typing import NDArray

from bbo_suite import Strategy

PRESETS: Mapping[str, str] = {
    "adatune": "annealing_on_model:AdaTune",
    "ansor": "genetic:Ansor",
    "autotvm": "annealing_on_model:AutoTvm",
    "chameleon": "chameleon:Chameleon",
    "chameleon-sampling": "chameleon:ClusteredSampling",
    "deepcuts": "enumeration:DeepCuts",
    "citroen": "citroen:Citroen",
    "dyna-ppo-mbo": "ensemble_search:DynaPpoMbo",
    "flextensor": "learned_direction:FlexTensor",
    "grouptuner": "group_tuner:GroupTuner",
    "halide": "enumeration:Halide",
    "hybrid-vndx": "hybrid_vndx:HybridVndx",
    "ils-px": "iterated_local_search:IlsPx",
    "inlining-tuner": "inlining_tuner:InliningTuner",
    "lfbo": "lfbo:Lfbo",
    "pet": "enumeration:Pet",
    "taso": "enumeration:Taso",
    "tensor-comprehensions": "genetic:TensorComprehensions",
}
"""By name: the module and the class."""


class Published(Strategy):
    """Searches in the style of published compilers and tuners, such as AutoTVM.

    The spaces, the code generators and the features of the original systems are not reproduced. `show published:NAME`
    says what is, and where each default comes from.
    """

    has_variants: ClassVar[bool] = True

    @classmethod
    def variants(cls) -> tuple[str, ...]:
        """Return the names of the systems."""
        return tuple(PRESETS)

    @classmethod
    @functools.cache
    def variant(cls, name: str) -> type[Strategy]:
        """Return the search of one system."""
        module, _, found = PRESETS[name].partition(":")
        return getattr(importlib.import_module(f".{module}", __name__), found)

    def ask(self, n: int) -> NDArray:
        """Raise: each variant has its own."""
        raise NotImplementedError
