"""Kernels of the catalogue's programs, as the fleet of `bbo_suite.fleet` tunes them."""
