"""Runs chosen HLO passes of XLA on modules as text; no code is generated.

Only children import this, because it imports jaxlib. Private names of jaxlib, which change between releases, are used
here and in `tensor_compiler.hlo.xla`.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from jaxlib import _hlo, _jax  # type: ignore[attr-defined]

from ..tensor_compiler.hlo.passes import NEVER
from ..tensor_compiler.hlo.xla import run_passes, stablehlo

_BEGIN = "\nENTRY "


class Compiler:
    """Runs passes on modules in *canonical text*: XLA's text of a module, with names by position.

    In canonical text, computations are written where they are called. So equal texts are equal modules, however often
    they were printed and read. XLA compiles only StableHLO, so every call converts the module to it. This splits shared
    constants and drops dead computations, which is why neither is counted.

    Args:
      remembered: modules kept in StableHLO, since a module is lowered for its cost, and then the next pass runs on it.
    """

    def __init__(self, remembered: int = 1) -> None:
        self._stablehlo = lru_cache(remembered)(stablehlo)
        self._options = _hlo.HloPrintOptions.canonical()
        self._options.print_large_constants = True
        self._options.print_operand_shape = False
        self._with_shapes = _hlo.HloPrintOptions.canonical()

    def canonical(self, text: str) -> str:
        """Return the canonical text of a module in HLO text, through StableHLO and without any pass.

        Raises:
          RuntimeError: it is not HLO, or cannot be expressed in StableHLO.
        """
        computation = _jax.mlir.mlir_module_to_xla_computation(self._stablehlo(text), False, False)
        return self._text(computation.as_serialized_hlo_module_proto(), self._options)

    def run(self, text: str, passes: Collection[str]) -> str:
        """Return the module after the named passes, which run in XLA's order.

        Raises:
          RuntimeError: a pass failed.
        """
        return self._text(self._ran(text, passes), self._options)

    def fused(self, text: str) -> str:
        """Return the module after layout assignment and fusion, with the shapes of operands.

        Raises:
          RuntimeError: a pass failed.
        """
        return self._text(self._ran(text, set(NEVER) - {"tree_reduction_rewriter"}), self._with_shapes)

    def _ran(self, text: str, passes: Collection[str]) -> bytes:
        return run_passes(self._stablehlo(text), passes)

    def _text(self, module: bytes, options: _hlo.HloPrintOptions) -> str:
        printed = _hlo.HloModule.from_serialized_hlo_module_proto(module).to_string(options)
        header, _, _ = printed.partition("\n")
        _, _, body = printed[printed.rindex(_BEGIN) :].partition("{")
        return f"{header}\n{_BEGIN}main {{{body}".rstrip()
