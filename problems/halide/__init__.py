"""Schedules of Halide pipelines: compiled and timed on this machine."""
