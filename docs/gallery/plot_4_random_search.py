"""
Random search in closed form
============================

All costs of a recorded space are known. So the expected result of random search needs no runs: it can be computed
exactly, and a search strategy should stay below that curve of costs.

The space holds all settings of twelve flags of GCC on one program; the cost is the size of the code in bytes.
"""

import matplotlib.pyplot as plt
import numpy as np

import bbo_suite
from bbo_suite.stats import best_so_far, expected_best

problem = bbo_suite.problem("recorded/gcc-huffman")
every = np.indices(problem.space.sizes).reshape(len(problem.space), -1).T
costs = problem.evaluate(every).values
print(f"{len(costs)} candidates, {costs.min():.0f} to {costs.max():.0f} {problem.unit}")

# %%
# Annealing starts at the compiler's default and runs ten times; each of its evaluations is a look-up.

study = bbo_suite.run("annealing", problem, budget=500, repeats=10, batch=5, jobs=1)
runs = [run["value"].to_numpy() for _, run in study.frame().groupby("seed")]
found = np.mean([best_so_far(run[:400]) for run in runs], axis=0)
budgets = np.arange(1, len(found) + 1)

figure, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.plot(budgets, expected_best(costs, budgets), "k--", label="random search, expected")
ax.plot(budgets, found, label="annealing, mean of 10 runs")
ax.axhline(costs.min(), color="0.4", ls=":", label="optimum")
ax.set(xscale="log", xlabel="evaluations", ylabel=f"best cost so far ({problem.unit})")
ax.legend()
