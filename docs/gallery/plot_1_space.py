"""
The space around the compiler's default
=======================================

How many single changes of the default make a program faster? We change each fusion decision of a small program alone,
and look at the costs.
"""

import matplotlib.pyplot as plt
import numpy as np

import bbo_suite

problem = bbo_suite.problem("fusion/rnn")
default = problem.default_row()
print(f"{len(problem.space)} decisions, {problem.space.cardinality:.3g} candidates")

# %%
# A candidate is a row of indices, a batch is a matrix. All decisions here are booleans, so a change flips one.

changed = np.repeat(default[None], len(default), axis=0)
np.fill_diagonal(changed, 1 - default)
costs = problem.evaluate(changed).values
speedups = problem.evaluate(default[None]).values[0] / costs

# %%
# Most changes cost something or do nothing. Few gain, and none gains much: the default is hard to beat.

print(f"better: {(speedups > 1.0001).sum()}, worse: {(speedups < 0.9999).sum()}, of {len(speedups)}")

figure, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.plot(np.sort(speedups)[::-1], lw=2)
ax.axhline(1, color="0.4", ls=":")
ax.set(xlabel="single changes of the default, the best first", ylabel="speedup over the default")
plt.show()
