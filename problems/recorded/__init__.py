"""Spaces in which every configuration was measured before: the file answers, in microseconds."""
