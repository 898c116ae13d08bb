"""The optimisation flags of the GCC that is installed: a live compiler."""
