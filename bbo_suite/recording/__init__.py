"""Measuring a problem into a file that other tools read."""
