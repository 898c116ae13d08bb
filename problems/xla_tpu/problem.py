"""The decisions of the XLA:TPU compiler as a problem."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Structure, UserError
from bbo_suite.core.libraries import refusal, require
from bbo_suite.supervised import LiveProblem, Service

from ..packages import installed_version
from ..tensor_compiler.calibration.estimates import Estimates
from ..tensor_compiler.hardware.machine import split_machine
from .decisions import FLAG, Decisions, Description, Value, decisions_of, decisions_of_row, declare, space_of
from .worker import DESCRIBE, ESTIMATE

_FORMAT = 1
"""Increase it when the cost of a candidate changes."""
_BLOCKS = Path(__file__).with_name("blocks.py")
MEMORY = 16 << 30
"""Largest address space of a child, in bytes; most of it is never used."""


class XlaTpuProblem(LiveProblem):
    """Flags, layouts and fusion barriers of XLA:TPU: `xla-tpu/block`, or `xla-tpu:file.py:function`, also with `@v4`.

    With `#flags` at the end only the flags are decided, which are the same for all programs.

    The compiler that Google ships works ahead of time, without a TPU. A candidate sets about twenty flags, the order of
    dimensions in memory of arguments, results and named values inside, and for each of the latter whether it may be
    fused into its users. The cost is the sum of the cycles that the compiler estimates for its schedule; loops count as
    often as they run. It is an estimate, not a measurement. So if a candidate is estimated to be faster than the
    default, but its roofline (bytes moved, operations) is more than 1 % worse, it is not a win: its cost is the
    default's times the ratio of the rooflines, and its reason says `contradicted`. The reason of every row has the
    changes of roofline and peak memory.

    Your own function takes no arguments and returns a pair: a JAX function, and its arguments as arrays or
    jax.ShapeDtypeStruct. The values that jax.ad_checkpoint.checkpoint_name names are tuned, or, if there are none, the
    16 largest. Another version of libtpu is another problem.
    """

    instances: ClassVar[tuple[str, ...]] = ("transformer", "attention", "mlp", "conv", "lstm", "dlrm", "norm")
    unit = "cycles"
    tells_parts = True
    reads_files = True
    decision = "flags, layouts, barriers of XLA:TPU"
    costs = "estimated cycles"
    time_per_candidate = "0.2 to 2 s"
    extra = "tpu"
    target: ClassVar[str] = f"{__package__}.worker:serve"
    """The function that the children serve."""

    def __init__(self, instance: str | Path) -> None:
        """Have the compiler's process trace the program.

        Args:
          instance: `block@machine`, or as a `Path` a user's function, `file.py:function@machine`; optionally `#flags`.

        Raises:
          UserError: the file or the function is not there, JAX cannot trace it, or libtpu is not installed.
        """
        name, only_flags = _without_mark(str(instance))
        name, self._machine = split_machine(Path(name) if isinstance(instance, Path) else name)
        self._path, self._name = _function(name) if isinstance(instance, Path) else (_BLOCKS, name)
        self._libtpu = libtpu_version()
        arguments = (str(self._path), self._name, self._machine)
        self._serve(Service(self.target, arguments, memory=MEMORY, start_seconds=600, name=f"XLA:TPU on {self._name}"))
        self._description: Description = self.query(DESCRIBE)
        decisions = decisions_of(self._description)
        self._decisions = [decision for decision in decisions if not only_flags or decision.kind == FLAG]
        self.space, self.default = space_of(self._decisions)
        compiler = f"xla-tpu-{self._libtpu}"
        content = f"{_FORMAT}|{compiler}|{self._machine}|{self._description.digest}|{self._decisions}"
        self._identify(content, compiler)

    @classmethod
    def available(cls) -> str:
        """Return whether JAX or libtpu is missing, or too old."""
        return refusal(libtpu_version)

    def request(self, config: NDArray) -> Decisions:
        """Return a candidate's decisions, without those that are the default."""
        return decisions_of_row(self._decisions, config)

    def estimate(self, config: NDArray) -> Estimates:
        """Return the compiler's estimates of one `(d,)` candidate.

        Raises:
          UserError: it does not compile.
        """
        return self.query((ESTIMATE, self.request(config)))

    def structure(self) -> Structure:
        """Return which parameters interact: those of one value, and of values that flow into each other."""
        return declare(self._description, self._decisions)

    def usage(self) -> str:
        """Return for which version the code is."""
        return (
            f"this Python code, for one core of {self._machine} with libtpu {self._libtpu}; costs are the compiler's"
            " estimates, so measure it on the machine. Another libtpu may not know a flag"
        )

    def paste(self, config: NDArray) -> str:
        """Return Python code that compiles the function with a candidate's decisions."""
        values, remarks = self._costs(np.stack([self.default_row(), config]))
        beside = f"{values[1]:,.0f} cycles estimated, the default {values[0]:,.0f}; {remarks[1]}"
        where = None if self._path == _BLOCKS else self._path
        head = f"{self._name}, one core of {self._machine}, libtpu {self._libtpu}: {beside}"
        return paste(head, self._name, where, self._description, self.request(config))

    def _costs(self, configs: NDArray) -> tuple[list[float], list[str]]:
        evaluations = self.evaluate(configs)
        return evaluations.values.tolist(), [evaluations.reasons.get(i, "") for i in range(len(configs))]

    def facts(self) -> dict[str, str]:
        """Return the compiler, the machine, the roofline of the default, and what the costs mean."""
        default = self.estimate(self.default_row())
        return {
            "compiler": f"XLA:TPU of libtpu {self._libtpu}, ahead of time",
            "machine": f"one core of {self._machine}",
            "roofline of the default": f"{default.roofline:,.0f} cycles",
            "peak memory of the default": f"{default.memory:,.0f} bytes",
            "costs": "the compiler's own estimates, not measurements; a win with a worse roofline counts as a loss",
        }


def _without_mark(instance: str) -> tuple[str, bool]:
    """Return an instance without `#flags`, and whether it had it."""
    name, mark, word = instance.rpartition("#")
    if mark and word == "flags":
        return name, True
    return instance, False


def _function(path: str) -> tuple[Path, str]:
    """Return the file and the function that `file.py:function` names."""
    file, _, name = path.rpartition(":")
    if not file or not name:
        raise UserError(f"{path!r} names no function; write --problem xla-tpu:my_module.py:my_function")
    if not Path(file).is_file():
        raise UserError(f"there is no file {file!r}; write --problem xla-tpu:my_module.py:my_function")
    return Path(file).absolute(), name


def libtpu_version() -> str:
    """Return the version of the compiler.

    Raises:
      UserError: it is not installed.
    """
    for package in ("jax", "jaxlib"):
        installed_version(package, "0.5", "xla-tpu/...")
    require("libtpu", "xla-tpu/...", "bbo_suite[tpu]")
    return version("libtpu")


_SNIPPET = """\
# {head}
import jax
from jax.experimental.layout import Format, Layout
from jax.sharding import SingleDeviceSharding

from bbo_problems.xla_tpu.marks import rewritten
from {module} import {name}

compiler_options = {options}{environment}
barriers = {barriers}
layouts = {layouts}
argument_orders = {arguments}
result_orders = {results}

f, arguments = {name}()
device = SingleDeviceSharding(jax.devices()[0])


def formats(tree, orders):
    leaves, structure = jax.tree.flatten(tree)
    chosen = [Format(Layout(orders[i]), device) if i in orders else device for i in range(len(leaves))]
    return jax.tree.unflatten(structure, chosen)


# by hand, instead of `rewritten`: x = jax.lax.optimization_barrier(x) for a barrier,
# x = jax.experimental.layout.with_layout_constraint(x, Layout(order)) for a layout
tuned = jax.jit(
    rewritten(f, barriers, layouts),
    in_shardings=formats(arguments, argument_orders),
    out_shardings=formats(jax.eval_shape(f, *arguments), result_orders),
)
compiled = tuned.lower(*arguments).compile(compiler_options=compiler_options)
"""


def paste(head: str, name: str, file: Path | None, description: Description, decisions: Decisions) -> str:
    """Return the snippet for one candidate.

    Args:
      head: a comment that names the candidate and its cost.
      name: of the function that returns the program, in `file`, or in `blocks`.
      description: of the program.
      decisions: of the candidate.
    """
    marks = {value.name: value for value in description.marks}
    return _SNIPPET.format(
        head=head,
        module=file.stem if file else f"{__package__}.blocks",
        name=name,
        options=_lines(dict(decisions.flags), {}),
        environment=_environment(decisions),
        barriers=_lines(dict.fromkeys(decisions.barriers), marks),
        layouts=_lines(dict(decisions.layouts), marks),
        arguments=_lines(dict(decisions.arguments), dict(enumerate(description.arguments))),
        results=_lines(dict(decisions.results), dict(enumerate(description.results))),
    )


def _environment(decisions: Decisions) -> str:
    """Return a comment with the environment variable that sets the flags for a whole process; none without flags."""
    flags = shlex.quote(" ".join(f"--{name}={value}" for name, value in decisions.flags))
    return f"\n# or for all programs of a process: LIBTPU_INIT_ARGS={flags}" if decisions.flags else ""


def _lines(chosen: Mapping[Any, Any], values: Mapping[Any, Value]) -> str:
    """Return a dictionary as text, or a list if its values are None, with one entry and a comment per line."""
    is_list = bool(chosen) and all(value is None for value in chosen.values())
    entries = [f"{key!r}" if is_list else f"{key!r}: {value!r}" for key, value in chosen.items()]
    notes = [_note(values.get(key)) for key in chosen]
    left, right = "[]" if is_list else "{}"
    return "\n".join([left, *_column(entries, notes), right]) if chosen else "{}"


def _column(entries: Sequence[str], notes: Sequence[str]) -> list[str]:
    return [f"    {entry},{note}" for entry, note in zip(entries, notes, strict=True)]


def _note(value: Value | None) -> str:
    if value is None:
        return ""
    extents = ", ".join(map(str, value.shape))
    where = f", {value.where}" if value.where else ""
    return f"  # {value.name}: {value.dtype}[{extents}]{where}"
