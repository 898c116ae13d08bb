"""How many instructions does a good choice and order of LLVM's passes save, compared with clang's -Oz?"""

from bbo_problems.llvm.ir import names
from bbo_problems.programs_c import large_names
from bbo_suite import Plan

PROGRAMS = [f"llvm/{name}" for name in names() if name not in large_names()]
PLAN = Plan(PROGRAMS, ["random", "annealing", "evolution", "mbo"], budgets=(300,), batch=10)
