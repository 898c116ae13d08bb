"""Schedules of Halide pipelines: a live compiler, timed."""
