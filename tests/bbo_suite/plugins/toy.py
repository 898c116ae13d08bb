import os
import time

import numpy as np

from bbo_suite import Evaluations, Problem, choice, product


class Toy(Problem):
    """Counts the parameters that are not at their best.

    It prints, as some plugins do.
    """

    instances = ("small", "large")

    def __init__(self, instance):
        d = {"small": 4, "large": 30}[instance]
        self.space = product(*(choice(f"p{i}", range(4)) for i in range(d)))
        self.default = np.zeros(d, int)
        self.optimum = 1.0

    def evaluate(self, configs):
        print("evaluating", len(configs))
        time.sleep(float(os.environ.get("TOY_SECONDS", "0")))
        return Evaluations.of(1.0 + (configs != 3).sum(axis=1))
