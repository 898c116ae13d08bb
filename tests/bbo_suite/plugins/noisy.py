import numpy as np

from bbo_suite import Evaluations, Problem, choice, product


class Noisy(Problem):
    """Costs differ by up to two percent."""

    instances = ("a",)
    noisy = True
    rng = np.random.default_rng(0)

    def __init__(self, instance):
        self.space, self.default = product(choice("x", range(9))), np.array([0])

    def evaluate(self, configs):
        return Evaluations.of((10.0 - configs[:, 0]) * self.rng.uniform(1, 1.02, len(configs)))
