"""The hardware model held against the estimates of the real XLA:TPU compiler, which runs without a TPU."""
