"""The mean over all programs: the cheap searches, one run each, with the seed that chose the six programs."""

from plan import PILOT, runs

from bbo_problems.tensor_compiler.tasks.programs import names

PLAN = runs(names(), ["exhaustive", "annealing", "evolution", "local", "mbo"], [PILOT])
