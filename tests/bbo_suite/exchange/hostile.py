import numpy as np

from bbo_suite import Evaluations, Problem, Status, choice, product, scale


class Hostile(Problem):
    """Names and values that formats trip over, and every way to fail."""

    instances = ("a",)

    def __init__(self, instance):
        self.space = product(
            choice("time", ["a,b", "a", "b,a"]),
            choice('say "hi",\n<b>', [True, 1, "1", "línea", None]),
            scale("tile", [8, 16, 32]),
            choice("__error__", [0.5, float("inf")]),
            choice("cost", ["InvalidConfig ", "nan", "x;y"]),
        )
        self.default = np.zeros(5, int)

    def evaluate(self, configs):
        """Fail in turn, by what the candidate is."""
        number = configs @ (90, 18, 6, 3, 1)
        status = np.where((number % 3 == 1), number % 6, Status.OK).astype(np.int8)
        status[status == Status.FORBIDDEN] = Status.WRONG_RESULT
        values = np.where(status == Status.OK, 1 + number / 7, np.inf)
        failed = np.flatnonzero(status).tolist()
        return Evaluations(values, status, {i: 'tile "x", línea 3:\nno such <b>' for i in failed})
