"""The process that compiles programs to learn from (see `calibration.compiler`)."""

from __future__ import annotations

from ...tensor_compiler.calibration.compiler import answer, compiled
from .programs import program, variant


def of_name(name: str, machine: str) -> tuple[str, dict[str, float]]:
    """Return what `compiled` does for a variant of a program, such as `gpt2~17.2`."""
    base, _, _ = name.partition(".")
    function, arguments = program(base)
    changed, flags = variant(name, function)
    return compiled(changed, arguments, machine, flags)


if __name__ == "__main__":
    answer(of_name)
