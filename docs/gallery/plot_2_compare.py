"""
Compare strategies
==================

Three strategies tune the tiles of a program's kernels on the simulated compiler, five times each.
"""

import bbo_suite

study = bbo_suite.run(["random", "annealing", "evolution"], "tile/rnn", budget=2000, repeats=5)
study

# %%
# How good is the best candidate after so many evaluations? The line is the median of five runs, the band holds the
# middle half of them.

figure = study.plot("convergence")

# %%
# And at the end, with 95 % intervals of the mean:

figure = study.plot("speedup")
