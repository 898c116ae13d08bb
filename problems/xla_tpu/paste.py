"""Writes a candidate as Python code that a user of JAX can paste."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .decisions import Decisions, Description, Value

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
