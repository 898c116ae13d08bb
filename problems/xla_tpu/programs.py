"""Loads a JAX function from a Python file: a user's, or one of `blocks`."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import jax

from .description import Description, Value
from .flows import marks
from .marks import Program

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
