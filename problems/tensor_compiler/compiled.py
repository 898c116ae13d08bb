"""The decorator of all compiled functions of the simulated compiler."""

from pathlib import Path

from bbo_suite.parts.compiler import Compiler

COMPILER = Compiler(Path(__file__).parent)
compiled = COMPILER.function
