"""Lets all tests of the network use the cache of compiled code."""

from bbo_suite.jax_settings import configure_jax

configure_jax()
