"""
Many problems: who is good at what?
===================================

One problem says nothing about others. Here three strategies run on six problems of four families, five times each.
"""

import bbo_suite

problems = ["tile/rnn", "flags/rnn", "fusion/rnn"]
problems += ["ordering/40x50-a", "ordering/40x50-b", "ehrlich/32x32-a"]
study = bbo_suite.run(["random", "annealing", "evolution"], problems, budget=500, repeats=5)
study

# %%
# The heat map shows each strategy's share of the best gain on each problem.

figure = study.plot("heat")

# %%
# Mean ranks over the problems. Strategies whose ranks differ by less than the critical difference cannot be
# distinguished: six problems are few.

figure = study.plot("critical")
