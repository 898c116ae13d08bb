"""Makes `games.py` importable as `strategy_games`, without a folder on the path that could hide a package."""

import importlib.util
import sys
from pathlib import Path

spec = importlib.util.spec_from_file_location("strategy_games", Path(__file__).with_name("games.py"))
module = importlib.util.module_from_spec(spec)
sys.modules["strategy_games"] = module
spec.loader.exec_module(module)
