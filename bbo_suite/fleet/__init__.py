"""A fleet of programs whose kernels are tuned day by day: policies compete for chip-seconds."""
