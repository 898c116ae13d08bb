"""Versions and hardware, stored with each run."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("bbo_suite", "numpy", "scipy", "scikit-learn", "numba", "jax")


def facts() -> dict[str, dict[str, str | int | None]]:
    """Return the versions and the machine that a run's `run.json` stores; nothing that identifies a person."""
    versions: dict[str, str | int | None] = {"python": platform.python_version()}
    versions |= {package: _version(package) for package in _PACKAGES}
    return {"versions": versions, "machine": {"system": platform.platform(), "cpu": _cpu(), "cores": os.cpu_count()}}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu() -> str:
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text(encoding="utf-8").splitlines() if listing.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()
