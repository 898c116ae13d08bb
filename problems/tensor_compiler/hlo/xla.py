"""XLA's own readers of HLO and StableHLO text. Only a child process imports this: bad input can crash them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from jaxlib import _hlo, _jax  # type: ignore[attr-defined]

_ERROR = re.compile(r"(\d+):\d+: error: ([^\n]{,200})")
_INSTRUCTION = re.compile(r"^ +(?:ROOT )?%[^ ]+ = .*$", re.MULTILINE)
# Without locations in the text, an instruction's metadata holds the line of the text that it comes from.
_SOURCE_LINE = re.compile(r'source_file="-" source_line=(\d+)')


def serve() -> Callable[[Any, Any], Any]:
    """Return the handler of requests: the name of a function below, and its arguments."""
    functions: dict[str, Callable[..., Any]] = {"printed": printed, "converted": converted}

    def answer(request: Any, enter: Any) -> Any:  # noqa: ANN401 - as the functions
        try:
            return functions[request[0]](*request[1:])
        except RuntimeError as error:
            first = _ERROR.search(str(error))
            raise ValueError(f"line {first[1]}: {first[2]}" if first else str(error)) from None

    return answer


def printed(text: str) -> str:
    """Return HLO text as XLA prints it, without metadata and large constants."""
    options = _hlo.HloPrintOptions.short_parsable()
    options.print_large_constants = False
    return str(_hlo.hlo_module_from_text(text).to_string(options))


def converted(text: str, bare: str) -> tuple[str, list[int]]:
    """Return StableHLO text as HLO text, and for each instruction its line in the text without locations, 0 if none."""
    lines = []
    if bare:
        for found in _INSTRUCTION.findall(_computation(bare).get_hlo_module().to_string()):
            line = _SOURCE_LINE.search(found)
            lines.append(int(line[1]) if line else 0)
    return _computation(text).as_hlo_text(), lines


def _computation(text: str) -> Any:  # noqa: ANN401 - an XlaComputation
    return _jax.mlir.mlir_module_to_xla_computation(text, use_tuple_args=False, return_tuple=False)
