import numpy as np

from bbo_suite import Moves, Strategy


class HillClimb(Strategy):
    """Keeps the best candidate and tries single changes of it."""

    def __init__(self, task, budget, rng, options):
        super().__init__(task, budget, rng, options)
        self.moves, self.best, self.cost = Moves(task.space), task.default[None], np.inf

    def ask(self, n):
        if np.isinf(self.cost):
            return self.best
        return self.moves.mutate(np.repeat(self.best, n, axis=0), np.ones(n, int), self.rng)

    def tell(self, configs, values):
        if values.min() < self.cost:
            self.best, self.cost = configs[[values.argmin()]], values.min()
