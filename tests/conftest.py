"""Lets all tests, and what they start, share one cache of compiled code, also where XDG_CACHE_HOME is a test's own."""

import os

from bbo_suite.files import cache_folder

os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder()))
