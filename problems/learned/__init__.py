"""Learned cost models of kernels (Kaufman et al. 2021): data, networks, training, and the screening of candidates."""
