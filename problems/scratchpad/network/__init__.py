"""Whole networks: all operators together decide what moves between DRAM and the scratchpad."""
