"""The XLA:TPU compiler, which compiles ahead of time and without a TPU: flags, layouts, fusion, tiles of kernels."""
