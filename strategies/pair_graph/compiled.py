"""The decorator of the compiled functions of this search."""

from pathlib import Path

from bbo_suite.parts.compiler import Compiler

compiled = Compiler(Path(__file__).parent).function
