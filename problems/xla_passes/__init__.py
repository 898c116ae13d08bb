"""The order of XLA's own HLO passes: a live compiler, through jaxlib."""
