"""Spaces in which every configuration was measured before; a file gives the cost of a candidate in microseconds."""
