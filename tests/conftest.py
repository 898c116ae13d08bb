"""Lets all tests, and the processes they start, share caches of compiled code, whatever their XDG_CACHE_HOME is."""

import os

from bbo_suite.files.cache import cache_folder

os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder()))
# The models of tests are small: nearly all of their time is compilation.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache_folder("jax")))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
