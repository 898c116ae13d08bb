"""XLA's own readers of HLO and StableHLO text, and its passes on modules; no code is generated.

Only a child process imports this: bad input can crash XLA. All private names of jaxlib, which change between releases,
are used here, in `calibration.compiler` and in `xla_passes.worker`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from jaxlib import _hlo, _jax  # type: ignore[attr-defined]

from .parser import LEFT_OUT, STRING
from .passes import EVERY, FLATTEN, SIMPLIFICATIONS

_HOOK = "bbo_suite"
_ERROR = re.compile(r"(?:(\d+):\d+|<unknown>:0): error: ([^\n]{,200})")
_INSTRUCTION = re.compile(r"^ +(?:ROOT )?%[^ ]+ = .*$", re.MULTILINE)
# Without locations in the text, an instruction's metadata holds the line of the text that it comes from.
_METADATA = re.compile(rf",\s*metadata=\{{(?:[^{{}}\"]|{STRING}|\{{[^{{}}\"]*\}})*+\}}")
# Without metadata in the text, `op_name` is an instruction's name, after those of the calls that were inlined.
_ORIGIN = re.compile(r'op_name="(?:[^"]*/)?([^"/]*)"')
_SOURCE_LINE = re.compile(r'source_file="-" source_line=(\d+)')


def serve() -> Callable[[Any, Any], Any]:
    """Return the handler of requests: the name of a function below, and its arguments."""
    functions: dict[str, Callable[..., Any]] = {"printed": printed, "converted": converted, "simplified": simplified}

    def answer(request: Any, enter: Any) -> Any:  # noqa: ANN401 - as the functions
        try:
            return functions[request[0]](*request[1:])
        except RuntimeError as error:
            first = _ERROR.search(str(error))
            line = f"line {first[1]}: " if first and int(first[1] or 0) else ""
            raise ValueError(f"{line}{first[2]}".rstrip(".: ") if first else str(error)[:300]) from None

    return answer


def printed(text: str) -> str:
    """Return HLO text as XLA prints it, without metadata; of constants that are left out, nothing is made up."""
    options = _hlo.HloPrintOptions.short_parsable()
    options.print_large_constants = LEFT_OUT not in text
    return str(_hlo.hlo_module_from_text(text).to_string(options))


def converted(text: str, bare: str) -> tuple[str, list[int]]:
    """Return StableHLO text as HLO text, and for each instruction its line in the text without locations, 0 if none.

    Constants are in full where that is fast: passes fold those that they read, and XLA makes up what is left out.
    """
    lines, options = [], _hlo.HloPrintOptions()
    options.print_large_constants = bool(bare)
    if bare:
        for found in _INSTRUCTION.findall(_computation(bare).get_hlo_module().to_string()):
            line = _SOURCE_LINE.search(found)
            lines.append(int(line[1]) if line else 0)
    return _computation(text).get_hlo_module().to_string(options), lines  # with the metadata


def simplified(text: str) -> tuple[str, list[str]]:
    """Return HLO text after `SIMPLIFICATIONS`, and for each instruction the one in `text` that it comes from, or ""."""
    serialized = run_passes(_flattened(stablehlo(_METADATA.sub("", text))), SIMPLIFICATIONS)
    module, options = _hlo.HloModule.from_serialized_hlo_module_proto(serialized), _hlo.HloPrintOptions()
    options.print_large_constants = False
    origins = [_ORIGIN.search(line) for line in _INSTRUCTION.findall(module.to_string(options))]
    options.print_metadata = False
    return str(module.to_string(options)), [origin[1] if origin else "" for origin in origins]


def stablehlo(text: str) -> bytes:
    """Return a module in HLO text in StableHLO, which is what XLA compiles.

    Raises:
      RuntimeError: it is not HLO, or cannot be expressed in StableHLO.
    """
    return bytes(_jax.mlir.hlo_to_stablehlo(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()))


def _flattened(module: bytes) -> bytes:
    """Return a module in StableHLO after `FLATTEN`."""
    from jax.interpreters import mlir
    from jaxlib.mlir import ir, passmanager

    with mlir.make_ir_context():
        parsed = ir.Module.parse(module)
        passmanager.PassManager.parse(f"builtin.module({FLATTEN})").run(parsed.operation)
        return mlir.module_to_bytecode(parsed)


def run_passes(module: bytes, passes: Collection[str]) -> bytes:
    """Return a module in StableHLO as a serialised HLO module after the named passes, which run in XLA's order.

    Raises:
      RuntimeError: a pass failed.
    """
    import jax  # it takes a second, which reading a text need not

    jax.config.update("jax_platforms", "cpu")
    device, options = jax.devices("cpu")[0], _jax.CompileOptions()
    disabled = ",".join(name for name in EVERY if name not in passes)
    options.executable_build_options.debug_options.xla_disable_hlo_passes = disabled
    with _stopped() as caught:
        try:
            device.client.compile_and_load(module, _jax.DeviceList((device,)), options)
        except jax.errors.JaxRuntimeError:
            if not caught:
                raise
    if not caught:  # the hook was not called: code was generated, and the module is unknown
        raise RuntimeError("this jaxlib does not stop before code generation")
    return caught[0]


class _Stop(Exception):
    """Raised after the last pass, so that no code is generated."""


@contextmanager
def _stopped() -> Iterator[list[bytes]]:
    """End every compilation in this process after the last pass, and yield a list that collects the modules."""
    import jax.extend.xla

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


def _computation(text: str) -> Any:  # noqa: ANN401 - an XlaComputation
    return _jax.mlir.mlir_module_to_xla_computation(text, use_tuple_args=False, return_tuple=False)
