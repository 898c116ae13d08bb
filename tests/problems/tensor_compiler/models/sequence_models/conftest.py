"""Makes `tiny.py` importable as `tiny_models`, without a folder on the path that could hide a package."""

import importlib.util
import sys
from pathlib import Path

spec = importlib.util.spec_from_file_location("tiny_models", Path(__file__).with_name("tiny.py"))
module = importlib.util.module_from_spec(spec)
sys.modules["tiny_models"] = module
spec.loader.exec_module(module)
