"""Makes `stored_runs.py` importable as `bbo_stored_runs`, as its parent's makes the toys."""

import importlib.util
import sys
from pathlib import Path

spec = importlib.util.spec_from_file_location("bbo_stored_runs", Path(__file__).with_name("stored_runs.py"))
module = importlib.util.module_from_spec(spec)
sys.modules["bbo_stored_runs"] = module
spec.loader.exec_module(module)
