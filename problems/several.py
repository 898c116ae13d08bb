"""One candidate for several programs; the engine has the problem, because `best --keep` knows it."""

from bbo_suite.several.problem import SeveralProblem

__all__ = ["SeveralProblem"]
