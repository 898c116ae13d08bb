"""Data sets of kernels of the real XLA:TPU compiler, with its own estimates as labels."""
