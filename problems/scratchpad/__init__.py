"""Schedules of whole programs under a small fast memory: files of the MLSys 2026 contest, and networks of our own."""
