"""The child process that runs XLA's passes: it takes a sequence of actions and returns a count."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jax

from ..pass_order.state import STATE, described
from .actions import LOWERINGS, PASSES, PIPELINE, PREPARATION
from .census import computations, graph
from .compiler import Compiler
from .needs import has_work
from .objectives import OBJECTIVES, OPERATIONS
from .states import States

_PARTS = "parts"
_ROUNDS = 16
"""Most repetitions of XLA's pipeline."""
_CHARACTERS = 1 << 26
"""Of the modules before such a repetition; the modules after it and those in StableHLO are about as long."""
Enter = Callable[[str, float], None]


def serve(text: str, objective: str) -> Callable[[Any, Enter], Any]:
    """Return the handler for one module in HLO text and one of `OBJECTIVES`.

    Raises:
      ValueError: it is not a module, or this jaxlib runs unknown passes on it.
    """
    os.environ.pop("XLA_FLAGS", None)  # a user's flags are not part of the problem
    jax.config.update("jax_platforms", "cpu")  # looking for accelerators takes seconds
    return Optimiser(text, objective).answer


class Optimiser:
    """One program, and the modules that passes have made from it."""

    def __init__(self, text: str, objective: str = OPERATIONS) -> None:
        remembered = min(64, max(1, _CHARACTERS // len(text)))
        self._compiler, self._objective = Compiler(remembered), OBJECTIVES[objective]
        self._round = lru_cache(remembered)(lambda module: self._compiler.run(module, (*PASSES, *LOWERINGS)))
        self._costs: dict[bytes, float] = {}
        self._described: dict[bytes, tuple[Any, ...]] = {}
        try:
            root = self._compiler.canonical(text)
            unchanged = self._compiler.run(root, ()) == root
            prepared = self._compiler.run(root, PREPARATION)
        except RuntimeError as error:
            raise ValueError(f"it cannot be read as HLO: {' '.join(str(error).split())[:200]}") from None
        if not unchanged:
            raise ValueError("this jaxlib runs unknown passes on it; use jaxlib 0.10.2")
        self._states = States(prepared, self._step)

    def answer(self, request: Any, enter: Enter) -> Any:  # noqa: ANN401 - a number, or with it a census
        """Return the cost of a sequence of actions and the lowerings that it left out.

        For a request `(STATE, actions)`, return the fields of the state before the lowerings that were left out. For
        `("parts", actions)`, return a pair: the cost, and the computations.
        """
        if request and request[0] == _PARTS:
            return self._cost(request[1]), self._parts(request[1])
        if request and request[0] == STATE:
            return self._cost(request[1]), *self._looks(request[1])
        return self._cost(request)

    def _cost(self, actions: Sequence[str]) -> float:
        whole = (*actions, *to_lower(actions))
        if (key := self._states.key(whole)) not in self._costs:
            text = self._states.module(whole)
            self._costs[key] = float(
                self._objective.count(self._compiler.fused(text) if self._objective.fused else text)
            )
        return self._costs[key]

    def _looks(self, actions: Sequence[str]) -> tuple[Any, ...]:
        if (key := self._states.key(actions)) not in self._described:
            self._described[key] = described(graph(self._states.module(actions)))
        return self._described[key]

    def _parts(self, actions: Sequence[str]) -> list[tuple[str, bytes, float, float]]:
        module = self._states.module((*actions, *to_lower(actions)))
        found = ((hashlib.blake2b("\n".join(lines).encode()).digest(), len(lines)) for lines in computations(module))
        return [("", content, 1.0, float(operations)) for content, operations in found]

    def _step(self, text: str, action: str) -> str:
        if action != PIPELINE:
            passes = [name for name in action.split(",") if has_work(name, text)]
            return self._compiler.run(text, passes) if passes else text
        for _ in range(_ROUNDS):
            before, text = text, self._round(text)  # many modules come to the same end
            if text == before:
                break
        return text


def to_lower(actions: Sequence[str]) -> tuple[str, ...]:
    """Return the step after a sequence: all lowerings that it left out, in XLA's order; empty if there are none."""
    missing = () if PIPELINE in actions else tuple(name for name in LOWERINGS if name not in actions)
    return (",".join(missing),) if missing else ()
