"""Writes orders.csv beside this file and prints it: is the order of XLA's target-independent passes worth a search?

python results/xla_passes/orders.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

import bbo_suite
from bbo_problems.tensor_compiler.hlo.passes import PASSES, SIMPLIFICATIONS

ORDERS, SEED = 40, 0
INDEPENDENT = [name for name in SIMPLIFICATIONS if name in PASSES]
MODELS = ("bert", "gpt2", "translate", "nmt", "moe", "rnn", "resnet", "resnet_v2", "convdraw", "dlrm")
PROGRAMS = (*(f"{model}-l1-infer" for model in MODELS), "gpt2-l1", "bert-l1", "resnet-10")


def row(program: str) -> dict[str, object]:
    """Return the operations of a program after these passes in XLA's order, and in random orders."""
    problem = bbo_suite.problem(f"xla-passes/{program}")
    rng = np.random.default_rng(SEED)
    orders = [(), INDEPENDENT, 2 * INDEPENDENT, *(rng.permutation(INDEPENDENT).tolist() for _ in range(ORDERS))]
    none, once, twice, *others = (problem.state(tuple(order)).cost for order in orders)
    found = {"without": none, "default": once, "default_twice": twice, "best": min(others)}
    return {"program": program, **found, "median": np.median(others), "worst": max(others)}


if __name__ == "__main__":
    table = pd.DataFrame(map(row, PROGRAMS))
    table.to_csv(Path(__file__).with_name("orders.csv"), index=False, float_format="%g")
    print(table.to_string(index=False))
