"""What do short searches gain on GCC's flags, over -Os, and on the tiles of a Pallas kernel, over the default?"""

from bbo_suite import Plan

TASKS = ["pallas/matmul", "gcc/huffman", "gcc/levenshtein", "gcc/lexer"]
PLAN = Plan(TASKS, ["random", "annealing", "evolution", "mbo"], budgets=(100,), seeds=3, batch=10)
