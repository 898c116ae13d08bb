"""The XLA:TPU compiler, ahead of time and without a TPU: flags, layouts, fusion, and tiles of kernels."""
