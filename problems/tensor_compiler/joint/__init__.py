"""All passes as one chain."""
