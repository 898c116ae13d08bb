"""
Passes tuned together, or in turn
=================================

A compiler is a chain of passes, and an early decision changes what later ones decide about. The strategy ``joint`` sees
the passes. Any other strategy sees one large space.
"""

import bbo_suite

problem = bbo_suite.problem("joint/rnn")
print(f"{len(problem.space)} parameters, 10^{len(str(problem.space.cardinality)) - 1} candidates")

# %%
# By default ``joint`` tunes layout and fusion together by annealing, and then the tile and the flags of each kernel.

study = bbo_suite.run(["joint", "annealing", "random"], problem, budget=2000, repeats=3)
figure = study.plot("convergence")
