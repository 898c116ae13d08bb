"""Makes `toy_compiler.py` importable as `toy_compiler`, without a folder on the path that could hide a package."""

import importlib.util
import sys
from pathlib import Path

spec = importlib.util.spec_from_file_location("toy_compiler", Path(__file__).with_name("toy_compiler.py"))
module = importlib.util.module_from_spec(spec)
sys.modules["toy_compiler"] = module
spec.loader.exec_module(module)
