"""The schedule of a joint search: which passes are tuned together, in what order, and by which strategy."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from bbo_suite import MultiPass, UserError
from bbo_suite.errors import did_you_mean


@dataclass(frozen=True)
class Step:
    """Passes that are tuned together.

    Attributes:
      passes: in the order in which the compiler runs them.
      strategy: the id of the strategy that proposes their decisions.
    """

    passes: tuple[str, ...]
    strategy: str


def default(compiler: MultiPass) -> tuple[Step, ...]:
    """Return the schedule of XTAT-M: passes that change the graph jointly by annealing, then each separable pass."""
    joint = tuple(name for name in compiler.passes if name not in compiler.separable)
    steps = [Step(joint, "annealing")] if joint else []
    return (*steps, *(Step((name,), "exhaustive") for name in compiler.passes if name in compiler.separable))


def parse(text: str, compiler: MultiPass, strategies: Collection[str]) -> tuple[Step, ...]:
    """Return the steps of a text such as `layout+fusion: annealing; tile: exhaustive`.

    Args:
      text: steps separated by `;`. A step is its passes separated by `+`, a `:`, and the id of a strategy.
      compiler: knows the passes; a step may name them in any order, and a schedule may leave some out.
      strategies: the ids that a step may name.

    Raises:
      UserError: the text is not a schedule of these passes.
    """
    steps: list[Step] = []
    for number, part in enumerate(text.split(";"), start=1):
        place = f"step {number} of schedule {text!r}"
        step = _step(part, place, compiler.passes, strategies)
        for name in step.passes:
            if any(name in earlier.passes for earlier in steps):
                raise UserError(f"{place} tunes pass {name!r} again; name each pass once")
        steps.append(step)
    return tuple(steps)


def _step(part: str, place: str, passes: tuple[str, ...], strategies: Collection[str]) -> Step:
    if not part.strip():
        raise UserError(f"{place} is empty; write pass+pass: strategy, and no ';' at the end")
    before, _, after = part.partition(":")
    names, strategy = [name.strip() for name in before.split("+")], after.strip()
    for name in names:
        if name not in passes:
            raise UserError(
                f"{place} names pass {name!r}, but the compiler has no such pass.{did_you_mean(name, passes)}"
            )
        if names.count(name) > 1:
            raise UserError(f"{place} names pass {name!r} twice; name each pass once")
    if not strategy:
        raise UserError(f"{place} names no strategy; write {'+'.join(names)}: strategy, such as annealing")
    if strategy not in strategies and strategy.partition(":")[0] not in strategies:  # the registry knows its variants
        hint = " It cannot search for itself." if strategy == "joint" else ""
        raise UserError(f"{place} names no usable strategy: {strategy!r}.{hint}{did_you_mean(strategy, strategies)}")
    return Step(tuple(sorted(names, key=passes.index)), strategy)
