"""Runs and studies while they go on: the loop, processes, clusters, Ctrl-C."""
