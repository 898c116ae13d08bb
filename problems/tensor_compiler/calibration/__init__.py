"""The comparison of the hardware model with the estimates of the real XLA:TPU compiler, which runs without a TPU."""
