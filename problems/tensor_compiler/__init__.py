"""A tensor compiler for programs in HLO: one folder for the graph, the passes and the machines."""
