"""Runs chosen HLO passes of XLA on modules as text; no code is generated.

Only children import this, because it imports jaxlib. All private names of jaxlib, which change between releases, are
used in this file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import lru_cache

import jax
import jax.extend.xla
from jaxlib import _hlo, _jax  # type: ignore[attr-defined]

from .actions import EVERY, NEVER

_BEGIN = "\nENTRY "
_HOOK = "bbo_suite"


class _Stop(Exception):
    """Raised after the last pass, so that no code is generated."""


@contextmanager
def _stopped() -> Iterator[list[bytes]]:
    """End every compilation in this process after the last pass, and yield a list that collects the modules."""
    caught: list[bytes] = []

    def catch(module: bytes) -> None:
        caught.append(module)
        raise _Stop

    stage = jax.extend.xla.PipelineStage.PRE_SCHEDULER
    jax.extend.xla.register_hlo_module_transformation(catch, name=_HOOK, stage=stage, platforms="cpu")
    try:
        yield caught
    finally:
        jax.extend.xla.clear_hlo_module_transformation(_HOOK, stage=stage, platforms="cpu")


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
        self._device = jax.devices("cpu")[0]
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
        options = _jax.CompileOptions()
        disabled = ",".join(name for name in EVERY if name not in passes)
        options.executable_build_options.debug_options.xla_disable_hlo_passes = disabled
        with _stopped() as caught:
            try:
                self._device.client.compile_and_load(self._stablehlo(text), _jax.DeviceList((self._device,)), options)
            except jax.errors.JaxRuntimeError:
                if not caught:
                    raise
        if not caught:  # the hook was not called: code was generated, and the module is unknown
            raise RuntimeError("this jaxlib does not stop before code generation")
        return caught[0]

    def _text(self, module: bytes, options: _hlo.HloPrintOptions) -> str:
        printed = _hlo.HloModule.from_serialized_hlo_module_proto(module).to_string(options)
        header, _, _ = printed.partition("\n")
        _, _, body = printed[printed.rindex(_BEGIN) :].partition("{")
        return f"{header}\n{_BEGIN}main {{{body}".rstrip()


def stablehlo(text: str) -> bytes:
    """Return a module in StableHLO, which is what XLA compiles."""
    return _jax.mlir.hlo_to_stablehlo(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
