"""Functions compiled by Numba: our settings, a cache that is renewed when any source changes, and handles of arrays.

A module that has compiled functions begins with `compiled = compiled_for(__file__)`; `@compiled()` then compiles a
function, and `@compiled.callback(signature)` one that other compiled code calls by its address. A handle is the address
of a tuple of arrays, by which a compiled function with a plain signature finds its data.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("NUMBA_OPT", "2")  # code is as fast as with the default of 3, and compiles in 3/4 of the time

import numba
import numpy as np
from llvmlite import binding
from numba import cfunc, njit, typeof, types
from numba.core import ccallback, compiler, dispatcher
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic
from numpy.typing import NDArray

from .files.cache import cache_folder

_CONFIG: Any = numba.config
_DECORATORS: Any = (dispatcher, ccallback)
_KEPT = 3
"""Folders of a family's compiled code that stay: that of the sources in use, and of other versions."""
_DIGEST = hashlib.sha256().digest_size
_ENGINE = Path(__file__), Path(__file__).parent / "parts"
"""The sources of the engine's own compiled functions, which those of all families call."""


def compiled_for(file: str) -> Compiler:
    """Return the compiler of a module's functions, whose code is renewed when any source of its family changes.

    Args:
      file: the module's `__file__`.
    """
    return _compiler(family_of(Path(file)))


def family_of(file: Path) -> Path:
    """Return the folder of the family that a module belongs to: the one directly in the outermost package.

    A module that is itself directly in the outermost package, or in none, is a family of its own.
    """
    while (file.parent.parent / "__init__.py").exists():
        file = file.parent
    return file


def sources_hash(*places: Path) -> str:
    """Return a hash of some Python files, and of all that are in some folders, subfolders included.

    Numba checks only the file in which a function is defined, and would miss a change of what the function calls.
    """
    paths = [path for place in places for path in ([place] if place.is_file() else sorted(place.rglob("*.py")))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:12]


def prepare_folder(parent: Path, family: str, version: str) -> Path | None:
    """Return the folder `compiled-<family>-<version>` after making it, or None if it cannot be made.

    Of a family's folders in `parent` only those that were used last are kept.
    """
    folder = parent / f"compiled-{family}-{version}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        own = (path for path in parent.iterdir() if path.name.startswith(f"compiled-{family}-"))
        by_use = sorted(own, key=lambda path: path.stat().st_mtime)
    except OSError:  # it is not writable, or another process removes a folder just now
        return folder if os.access(folder, os.W_OK) else None
    for old in by_use[:-_KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return folder


class _CheckedFiles(IndexDataCacheFile):
    """The files of compiled code of one function, with checksums: a damaged one is removed, and counts as missing."""

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[io.BytesIO]:
        content = io.BytesIO()
        with super()._open_for_write(filepath) as file:
            yield content
            file.write(content.getvalue() + hashlib.sha256(content.getvalue()).digest())  # Numba ignores what follows

    def _load_index(self) -> dict[Any, str]:
        return super()._load_index() if _is_whole(Path(self._index_path)) else {}

    def _load_data(self, name: str) -> Any:  # noqa: ANN401
        if not _is_whole(Path(self._data_path(name))):
            raise FileNotFoundError(name)
        return super()._load_data(name)


def _is_whole(file: Path) -> bool:
    """Return whether a file of compiled code is there as it was written; else it is removed."""
    with suppress(OSError):
        data = file.read_bytes()
        if hashlib.sha256(data[:-_DIGEST]).digest() == data[-_DIGEST:]:
            return True
        file.unlink()
    return False


class _Cache(FunctionCache):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _CheckedFiles(self._cache_path, self._impl.filename_base, stamp)


class _Contained(JITCodeLibrary):
    """The code of a function that other compiled code contains: it needs no machine code of its own.

    Numba would optimise and translate each function again at every level of calls, which took two fifths of the time.
    """

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager(
            loop_vectorize=False, slp_vectorize=False, opt=self._codegen._opt_level, cost="cheap"
        )
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        """Define the function's environment only, which Numba then fills in."""
        self._finalize_dynamic_globals()
        names = [each.name for each in self._final_module.global_variables if each.name.startswith("_ZN08NumbaEnv")]
        lines = [
            str(self._codegen._create_empty_module(self.name)),
            *(f'@"{name}" = common global ptr null' for name in names),
        ]
        self._codegen._add_module(binding.parse_assembly("\n".join(lines)))
        self._codegen._engine.finalize_object()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0


class _InnerCompiler(compiler.Compiler):
    def __init__(self, typing: Any, target: Any, library: None, *rest: Any) -> None:  # noqa: ANN401
        super().__init__(typing, target, _Contained(target.codegen(), "inner"), *rest)


class _Function(CPUDispatcher):
    """A function that compiled code contains, and that Python calls by a twin that unpacks Python's objects.

    Few functions are called from Python, and to compile the unpacking of a tuple of many arrays takes long.
    """

    twin: Any

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401 - of any function
        return self.twin(*arguments, **keywords)

    def get_call_template(self, arguments: Any, keywords: Any) -> Any:  # noqa: ANN401 - numba's own types
        """Return what a call calls: one function whatever constants it is given, which LLVM sees after inlining."""
        kinds = tuple(types.unliteral(kind) for kind in arguments)
        return super().get_call_template(kinds, {name: types.unliteral(kind) for name, kind in keywords.items()})


class Compiler:
    """Compiles functions of one family and keeps the code in the user's cache folder, or in $NUMBA_CACHE_DIR.

    Args:
      sources: the files and folders that the compiled code depends on, that of the family first.

    Attributes:
      folder: where the code is kept; None if there is no folder that can be written.
    """

    def __init__(self, *sources: Path) -> None:
        parent = Path(_CONFIG.CACHE_DIR or cache_folder())
        self.folder = prepare_folder(parent, sources[0].stem, sources_hash(*sources))

    def __call__(self, runtime: bool = True, inline: bool = True) -> Callable[[Callable[..., Any]], Any]:
        """Return a decorator for functions that Python and compiled code call.

        Args:
          runtime: False for code that allocates nothing. References to arrays are then not counted, which took a third
            of the time of the hot loops, and the code is inlined, since passing the arrays of a graph took another
            fifth.
          inline: False for large functions that take handles, not arrays; each is then compiled once only.
        """
        settings: dict[str, Any] = {"nogil": True, "_nrt": runtime, "forceinline": inline and not runtime}
        return lambda function: self._function(settings, function)

    def callback(self, signature: Any) -> Callable[[Callable[..., Any]], Any]:  # noqa: ANN401 - numba has no types
        """Return a decorator for functions that compiled code calls by their address; they must not allocate."""
        return lambda function: self._compiled(lambda **settings: cfunc(signature, **settings), {}, function)

    def _function(self, settings: dict[str, Any], function: Callable[..., Any]) -> Any:  # noqa: ANN401
        inner = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _InnerCompiler}
        made = _njit(error_model="numpy", **settings, **inner)(function)
        made.__class__ = _Function
        made.twin = self._compiled(njit, settings, function)
        return made

    def _compiled(self, decorator: Any, settings: dict[str, Any], function: Any) -> Any:  # noqa: ANN401
        with self._cache():
            return decorator(cache=self.folder is not None, error_model="numpy", **settings)(function)

    @contextmanager
    def _cache(self) -> Iterator[None]:
        before = _CONFIG.CACHE_DIR
        _CONFIG.CACHE_DIR = str(self.folder or before)
        for module in _DECORATORS:
            module.FunctionCache = _Cache
        try:
            yield
        finally:
            _CONFIG.CACHE_DIR = before
            for module in _DECORATORS:
                module.FunctionCache = FunctionCache


@cache
def _compiler(family: Path) -> Compiler:
    return Compiler(*_ENGINE) if family in _ENGINE else Compiler(family, *_ENGINE)


_intrinsic: Any = intrinsic
_njit: Any = njit
_TYPES: dict[str, Any] = {}
compiled = compiled_for(__file__)


def handle(value: tuple[Any, ...]) -> NDArray[np.int64]:
    """Return memory that holds a tuple of arrays, or of such tuples, as compiled code lays it out.

    Its address is the handle. The arrays must live as long as the handle is used.
    """
    return np.array(list(_words(value)), np.int64)


def _words(value: tuple[Any, ...]) -> Iterator[int]:
    """Yield the words that Numba keeps of each array. If Numba wrote them, it would compile that for 2 seconds."""
    for each in value:
        if isinstance(each, tuple):
            yield from _words(each)
        else:
            yield from (0, id(each), each.size, each.itemsize, each.ctypes.data, *each.shape, *each.strides)


def name_of_type(value: tuple[Any, ...]) -> str:
    """Return a name of a tuple's numba type for `load`.

    A compiled function that is made within another keeps what it takes from there as part of the name of its code in
    the cache. Types change that name, since numba numbers them as they come; their own names do not.
    """
    kind = typeof(value)
    _TYPES[kind.name] = kind
    return kind.name


@_intrinsic(prefer_literal=True)
def load(context: Any, address: Any, kind: Any) -> Any:  # noqa: ANN401 - numba's own types
    """Return the tuple of a handle; `kind` is its numba type or a name of it. For code that counts no references."""
    value = _TYPES[kind.literal_value] if isinstance(kind, types.StringLiteral) else kind.instance_type

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        return builder.load(builder.inttoptr(arguments[0], target.get_value_type(value).as_pointer()))

    return value(types.int64, kind), generate


@compiled(runtime=False)
def mix(key: np.uint64, number: np.uint64) -> np.uint64:
    """Return a hash of a hash and one more number (a step of MurmurHash3 with 64 bits, and its last steps)."""
    scrambled = number * np.uint64(0x87C37B91114253D5)
    scrambled = (scrambled << np.uint64(31)) | (scrambled >> np.uint64(33))
    mixed = (key ^ (scrambled * np.uint64(0x4CF5AD432745937F))) + np.uint64(0x52DCE729)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return mixed ^ (mixed >> np.uint64(33))
