"""The searches of published compilers and tuners: eight mechanisms, one a file, and the systems as presets."""

from .presets import Published

__all__ = ["Published"]
