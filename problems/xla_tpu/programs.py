"""A JAX function from a Python file, a user's or one of `blocks`: which values can be tuned, and how they flow."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from .decisions import Description, Value
from .marks import BODIES, CALLS, Program, label

MOST = 16
"""How many values are tuned in a function that names none: the largest ones."""
_LIGHT = ("broadcast_in_dim", "reshape", "iota", "convert_element_type", "squeeze", "slice", "copy")
_INNER = CALLS | BODIES


def marks(closed: ClosedJaxpr) -> tuple[list[Value], list[tuple[int, int]]]:
    """Return the values that can be tuned, and the direct flows between them.

    A flow is a pair of numbers. They count the function's arguments first, then the marks, then the results.
    """
    first: dict[str, JaxprEqn] = {}

    def keep(operation: JaxprEqn, name: str, sources: frozenset[int]) -> None:
        first[name] = operation

    _trace(closed.jaxpr, [frozenset()] * len(closed.jaxpr.invars), Counter(), keep)
    chosen = _chosen(first)
    numbers = {name: len(closed.jaxpr.invars) + i for i, name in enumerate(chosen)}
    flows: set[tuple[int, int]] = set()

    def note(operation: JaxprEqn, name: str, sources: frozenset[int]) -> frozenset[int] | None:
        if name not in numbers:
            return None
        flows.update((source, numbers[name]) for source in sources)
        return frozenset([numbers[name]])

    sources = [frozenset([i]) for i in range(len(closed.jaxpr.invars))]
    ends = _trace(closed.jaxpr, sources, Counter(), note)
    last = len(sources) + len(chosen)
    flows.update((source, last + i) for i, end in enumerate(ends) for source in end)
    return [_mark(name, first[name]) for name in chosen], sorted(flows)


def _trace(jaxpr: Jaxpr, values: Sequence[frozenset[int]], seen: Counter[str], note: Any) -> list[frozenset[int]]:  # noqa: ANN401
    """Walk over the operations as `marks._run` does; a value is the set of marks that it comes from."""
    known = dict(zip(jaxpr.invars, values, strict=True))

    def read(variable: Any) -> frozenset[int]:  # noqa: ANN401 - a variable or a literal
        return frozenset() if isinstance(variable, Literal) else known.get(variable, frozenset())

    for operation in jaxpr.eqns:
        primitive, sources = operation.primitive.name, [read(v) for v in operation.invars]
        inner = operation.params.get(_INNER.get(primitive, ""))
        every = frozenset().union(*sources)
        if inner is None:
            own = None if operation.primitive.multiple_results else note(operation, label(operation, seen), every)
            results = [own or every] * len(operation.outvars)
        else:  # the constants of a loop's condition come first
            results = _trace(inner.jaxpr, sources[len(sources) - len(inner.jaxpr.invars) :], seen, note)
        known.update(zip(operation.outvars, results, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _chosen(found: Mapping[str, JaxprEqn]) -> list[str]:
    """Return the names that the user gave, otherwise those of the largest results that are not cheap to compute."""
    named = [name for name, operation in found.items() if operation.primitive.name == "name"]
    if named:
        return named
    heavy = [n for n, o in found.items() if o.primitive.name not in _LIGHT and len(_array(o).shape) > 1]
    largest = set(sorted(heavy, key=lambda n: -_bytes(found[n]))[:MOST])
    return [name for name in found if name in largest]


def _array(operation: JaxprEqn) -> Any:  # noqa: ANN401 - an abstract array
    return operation.outvars[0].aval


def _bytes(operation: JaxprEqn) -> int:
    return int(np.prod(_array(operation).shape)) * _array(operation).dtype.itemsize


def _mark(name: str, operation: JaxprEqn) -> Value:
    from jax._src import source_info_util

    array = _array(operation)
    return Value(name, tuple(array.shape), str(array.dtype), source_info_util.summarize(operation.source_info))


_EXAMPLE = "`return f, (jax.ShapeDtypeStruct((8, 128), 'float32'),)`"
_HOW = f"it takes no arguments and returns a pair of a JAX function and its arguments, as in {_EXAMPLE}"


def load(path: str, name: str) -> Program:
    """Return what `name()` in a file returns: a function, and its arguments as arrays or `jax.ShapeDtypeStruct`.

    Raises:
      ValueError: one sentence says what is wrong with the file or the function.
    """
    maker = getattr(_module(Path(path)), name, None)
    if not callable(maker):
        raise ValueError(f"{path} defines no function {name!r}")
    try:
        inspect.signature(maker).bind()
    except TypeError:
        raise ValueError(f"{name} takes arguments; name a function without any: {_HOW}") from None
    try:
        pair = maker()
    except BaseException as error:  # SystemExit and KeyboardInterrupt too
        raise ValueError(f"{name} raises {_error_text(error, path)}") from None
    if not (isinstance(pair, tuple) and len(pair) == 2 and callable(pair[0]) and isinstance(pair[1], Sequence)):
        raise ValueError(f"{name} returns {_kind(pair)}; {_HOW}")
    if not all(hasattr(leaf, "shape") and hasattr(leaf, "dtype") for leaf in jax.tree.leaves(tuple(pair[1]))):
        raise ValueError(f"{name} returns arguments that are not arrays; make each an array or a jax.ShapeDtypeStruct")
    return pair[0], tuple(pair[1])


def describe(program: Program, path: str, name: str) -> Description:
    """Return what a search can decide about a program.

    Raises:
      ValueError: JAX cannot trace it, or it does not return an array.
    """
    function, arguments = program
    try:
        closed, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
        text = jax.jit(function).lower(*arguments).as_text()
    except BaseException as error:
        raise ValueError(f"JAX cannot trace what {name} returns: {_error_text(error, path)}") from None
    found, flows = marks(closed)
    results = _values(shapes, "result")
    if not results:
        raise ValueError(f"the function of {name} does not return an array, so there is nothing to compile")
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return Description(_values(arguments, "argument"), results, tuple(found), tuple(flows), digest)


def _values(tree: Any, word: str) -> tuple[Value, ...]:  # noqa: ANN401 - a tree of arrays
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    names = [f"{word}{jax.tree_util.keystr(path)}" for path, _ in leaves]
    return tuple(Value(n, tuple(leaf.shape), str(leaf.dtype)) for n, (_, leaf) in zip(names, leaves, strict=True))


def _module(path: Path) -> ModuleType:
    if path.parent == Path(__file__).parent:
        return importlib.import_module(f".{path.stem}", __package__)
    own = f"{__package__}.file_of_a_user.{path.stem}"  # a name that does not hide another module
    spec = importlib.util.spec_from_file_location(own, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.append(str(path.parent))
    sys.modules[own] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        raise ValueError(f"{path} cannot be imported: it raises {_error_text(error, str(path))}") from None
    return module


def _error_text(error: BaseException, path: str) -> str:
    """Return an error's type, the line in the user's file, and its message."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    where = f" (line {lines[-1]})" if lines else ""
    return f"{type(error).__name__}{where}: {' '.join(str(error).split())[:200]}"


def _kind(value: Any) -> str:  # noqa: ANN401 - whatever a user's function returns
    return "nothing" if value is None else f"{type(value).__name__}"
