"""Synthetic ordering problems: the order of compiler passes, and sequences with forbidden transitions."""
