"""
A strategy of your own
======================

A class takes part like any other strategy. This one keeps the best candidate and changes it in one place, and is
compared with annealing and random search on the order of a compiler's passes.
"""

import numpy as np

import bbo_suite


class HillClimb(bbo_suite.Strategy):
    """Keeps the best candidate and tries single changes of it."""

    def __init__(self, task, budget, rng, options):
        super().__init__(task, budget, rng, options)
        self.moves, self.best, self.cost = bbo_suite.Moves(task.space), task.default[None], np.inf

    def ask(self, n):
        if np.isinf(self.cost):
            return self.best
        return self.moves.mutate(np.repeat(self.best, n, axis=0), np.ones(n, int), self.rng)

    def tell(self, configs, values):
        if values.min() < self.cost:
            self.best, self.cost = configs[[values.argmin()]], values.min()


# %%
# It never accepts anything worse, so it stops where no single change helps.

study = bbo_suite.run([HillClimb, "annealing", "random"], "ordering/40x50-a", budget=2000, repeats=5)
study

# %%

figure = study.plot("convergence")
