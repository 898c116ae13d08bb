"""The layout pass."""
