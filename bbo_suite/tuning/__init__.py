"""Searching a strategy's own options, and pre-training strategies."""
