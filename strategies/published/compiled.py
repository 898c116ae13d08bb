"""The compiler of this package's functions."""

from pathlib import Path

from bbo_suite.parts.compiler import Compiler

compiled = Compiler(Path(__file__).parent).function
