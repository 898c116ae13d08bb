"""The child process that runs XLA's passes: it takes a sequence of actions and returns a count; no code is generated.

Only children import this, because it imports jaxlib. Private names of jaxlib, which change between releases, are used
here and in `tensor_compiler.hlo.xla`.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any

import jax
from jaxlib import _hlo, _jax  # type: ignore[attr-defined]

from bbo_suite.supervised import PARTS

from ..pass_order.state import STATE, described
from ..tensor_compiler.hlo.passes import LOWERINGS, NEVER, PASSES, PREPARATION
from ..tensor_compiler.hlo.xla import run_passes, stablehlo
from .census import OBJECTIVES, OPERATIONS, PIPELINE, census, computations, graph

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


_DOT = r" dot\("
_LOOP = r" while\("
_BRANCH = r" conditional\("
_GATHER = r" gather\("
_SCATTER = r" scatter\("
_NEEDS = {
    "zero_sized_hlo_elimination": r"\[(?:\d+,)*0[,\]]",
    "conditional-to-select": _BRANCH,
    "map-inline": r" map\(",
    "call-inliner": r" call\(",
    "batch-dot-simplification": _DOT,
    "simplify-sorts": r" sort\(",
    "while-loop-invariant-code-motion": _LOOP,
    "tuple-simplifier": r" get-tuple-element\(",
    "while-loop-constant-sinking": _LOOP,
    "simplify-while-loops": _LOOP,
    "simplify-conditional": _BRANCH,
    "transpose-folding": r" transpose\(",
    "dot_decomposer": _DOT,
    "float-normalization-bf16": r"\bbf16\[",
    "convolution-canonicalization": r" convolution\(",
    "gather_expander": _GATHER,
    "gather_simplifier": _GATHER,
    "select_and_scatter_expander": r" select-and-scatter\(",
    "scatter_expander": _SCATTER,
    "scatter_simplifier": _SCATTER,
    "gemv-rewriter": _DOT,
}
_PATTERNS = {name: re.compile(pattern) for name, pattern in _NEEDS.items()}


def has_work(name: str, text: str) -> bool:
    """True if a pass may change a module in HLO text."""
    return name not in _PATTERNS or bool(_PATTERNS[name].search(text))


_TEXT_CHARACTERS = 1 << 28
"""Characters of texts that are held; a text that was dropped is computed again when it is needed."""
STEPS = 1 << 20
"""Steps that are remembered."""

Step = Callable[[str, str], str]


class States:
    """Applies sequences of actions to one module, and remembers the result of each action.

    Sequences with the same beginning share its results. So do sequences that reach the same module in different ways,
    for example because a pass changed nothing or two passes commute.

    Args:
      root: the module that every sequence starts from, in canonical text.
      step: takes a text and an action, and returns the new text or raises RuntimeError.
    """

    def __init__(self, root: str, step: Step) -> None:
        self._step, self._root = step, root
        self._forget()

    def _forget(self) -> None:
        self._texts: OrderedDict[bytes, str] = OrderedDict()
        self._size = 0
        self._counts: dict[bytes, Counter[str]] = {}
        self._next: dict[tuple[bytes, str], bytes | RuntimeError] = {}
        self._start = self._keep(self._root)

    def after(self, actions: Sequence[str]) -> Counter[str]:
        """Return the number of operations of each kind in the module after a sequence.

        Raises:
          RuntimeError: an action fails.
        """
        return self._counts[self.key(actions)]

    def key(self, actions: Sequence[str]) -> bytes:
        """Return the digest of the module after a sequence.

        Raises:
          RuntimeError: an action fails.
        """
        if len(self._next) > STEPS:
            self._forget()
        place, known = self._start, [self._start]
        for action in actions:
            follower = self._next.get((place, action))
            if follower is None:
                return self._walk(known, actions)
            if isinstance(follower, RuntimeError):
                raise follower
            place = follower
            known.append(place)
        return place

    def module(self, actions: Sequence[str]) -> str:
        """Return the text of the module after a sequence."""
        return self._texts[self._walk([self._start], actions)]

    def _walk(self, known: Sequence[bytes], actions: Sequence[str]) -> bytes:
        """Continue from the last known module whose text is kept, or from the root, whose text is always there."""
        start = next((i for i in range(len(known) - 1, 0, -1) if known[i] in self._texts), 0)
        place = known[start]
        text = self._texts[place] if start else self._root
        for action in actions[start:]:
            follower = self._next.get((place, action))
            if isinstance(follower, RuntimeError):
                raise follower
            if follower is None or follower not in self._texts:
                follower = self._run_action(place, text, action)
            place, text = follower, self._texts[follower]
            self._texts.move_to_end(place)
        return place

    def _run_action(self, place: bytes, text: str, action: str) -> bytes:
        try:
            follower = self._keep(self._step(text, action))
        except RuntimeError as error:
            self._next[place, action] = RuntimeError(*error.args)  # without its traceback, which holds the text
            raise
        self._next[place, action] = follower
        return follower

    def _keep(self, text: str) -> bytes:
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        if digest not in self._counts:
            self._counts[digest] = census(text)
        if digest not in self._texts:
            self._texts[digest] = text
            self._size += len(text)
        self._texts.move_to_end(digest)
        while self._size > _TEXT_CHARACTERS and len(self._texts) > 1:
            self._size -= len(self._texts.popitem(last=False)[1])
        return digest


_ROUNDS = 16
"""Most repetitions of XLA's pipeline."""
_ROUND_CHARACTERS = 1 << 26
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
        remembered = min(64, max(1, _ROUND_CHARACTERS // len(text)))
        self.compiler, self._objective = Compiler(remembered), OBJECTIVES[objective]
        self._round = lru_cache(remembered)(lambda module: self.compiler.run(module, (*PASSES, *LOWERINGS)))
        self._costs: dict[bytes, float] = {}
        self._described: dict[bytes, tuple[Any, ...]] = {}
        try:
            root = self.compiler.canonical(text)
            unchanged = _body(self.compiler.run(root, ())) == _body(root)
            prepared = self.compiler.run(root, PREPARATION)
        except RuntimeError as error:
            raise ValueError(f"it cannot be read as HLO: {' '.join(str(error).split())[:200]}") from None
        if not unchanged:
            raise ValueError("this jaxlib runs unknown passes on it; use jaxlib 0.10.2")
        self.states = States(prepared, self._step)

    def answer(self, request: Any, enter: Enter) -> Any:  # noqa: ANN401 - a number, or with it a census
        """Return the cost of a sequence of actions and the lowerings that it left out.

        For a request `(STATE, actions)`, return the fields of the state before the lowerings that were left out. For
        `("parts", actions)`, return a pair: the cost, and the computations.
        """
        if request and request[0] == PARTS:
            return self._cost(request[1]), self._parts(request[1])
        if request and request[0] == STATE:
            return self._cost(request[1]), *self._looks(request[1])
        return self._cost(request)

    def _cost(self, actions: Sequence[str]) -> float:
        whole = (*actions, *to_lower(actions))
        if (key := self.states.key(whole)) not in self._costs:
            text = self.states.module(whole)
            self._costs[key] = float(
                self._objective.count(self.compiler.fused(text) if self._objective.fused else text)
            )
        return self._costs[key]

    def _looks(self, actions: Sequence[str]) -> tuple[Any, ...]:
        if (key := self.states.key(actions)) not in self._described:
            self._described[key] = described(graph(self.states.module(actions)))
        return self._described[key]

    def _parts(self, actions: Sequence[str]) -> list[tuple[str, bytes, float, float]]:
        module = self.states.module((*actions, *to_lower(actions)))
        found = ((hashlib.blake2b("\n".join(lines).encode()).digest(), len(lines)) for lines in computations(module))
        return [("", content, 1.0, float(operations)) for content, operations in found]

    def _step(self, text: str, action: str) -> str:
        if action != PIPELINE:
            passes = [name for name in action.split(",") if has_work(name, text)]
            return self.compiler.run(text, passes) if passes else text
        for _ in range(_ROUNDS):
            before, text = text, self._round(text)  # many modules come to the same end
            if text == before:
                break
        return text


def _body(text: str) -> str:
    """Return a module in canonical text without its first line: the layouts there are lost in the first compilation."""
    return text.partition("\n")[2]


def to_lower(actions: Sequence[str]) -> tuple[str, ...]:
    """Return the step after a sequence: all lowerings that it left out, in XLA's order; empty if there are none."""
    missing = () if PIPELINE in actions else tuple(name for name in LOWERINGS if name not in actions)
    return (",".join(missing),) if missing else ()
