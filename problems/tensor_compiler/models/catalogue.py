"""All programs by name: those that ship, and variants of every model that are lowered when first used."""

from __future__ import annotations

from collections.abc import Callable

from . import MODELS, Program
from .sequence_programs import SEQUENCE
from .vision_programs import VISION

PROGRAMS: dict[str, Callable[..., Program]] = MODELS | VISION | SEQUENCE
