"""How JAX runs: on the CPU, and with a cache of compiled code."""

from __future__ import annotations

import hashlib
from pathlib import Path

from .files.cache import cache_folder


def configure_jax() -> None:
    """Keep JAX on the CPU and its compiled code in the user's cache folder; the user's own settings take precedence.

    JAX would reserve an accelerator, on which runs do not repeat exactly. Compiling the network takes up to a minute,
    loading it a second.
    """
    import jax

    if not jax.config.jax_platforms:  # type: ignore[attr-defined]
        jax.config.update("jax_platforms", "cpu")
    if not jax.config.jax_compilation_cache_dir and (folder := _writable_cache()):  # type: ignore[attr-defined]
        from jax.experimental.compilation_cache import compilation_cache

        jax.config.update("jax_compilation_cache_dir", str(folder))
        compilation_cache.reset_cache()  # otherwise JAX uses no cache if it has compiled anything before


def _writable_cache() -> Path | None:
    """Return a folder for code compiled for this processor, or None if it cannot be made.

    Code that was compiled for other instruction sets may crash, and its results differ in the last digits.
    """
    from llvmlite import binding

    processor = f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"
    folder = cache_folder(f"jax-{hashlib.sha256(processor.encode()).hexdigest()[:12]}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder
