"""The fusion pass."""
