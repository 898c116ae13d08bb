"""Runs and studies on disk: the only place that writes and parses them."""
