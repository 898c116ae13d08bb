"""A policy that chooses the next pass: imitates the best sequences that searches found, and guides a beam search.

It works on any Gymnasium environment with discrete actions of which action 0 stops, whose `reset(options={"problem":
name})` starts a program, and whose `info["cost"]` is what the passes so far cost; so it knows no compiler.
"""
