"""Sharding: how each tensor of a program lies on a mesh of devices."""
