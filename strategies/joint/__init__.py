"""The joint search over a chain of compiler passes."""

from .strategy import Joint, JointOptions

__all__ = ["Joint", "JointOptions"]
