"""Processor time of a step of the environment in the child process, that computes its cost and its observation.

    python results/xla_passes/step_speed.py      # writes steps.csv

Episodes are random, and, as when a policy is trained, variations of a good sequence.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.random import Generator

from bbo_problems.pass_order.state import STATE
from bbo_problems.tensor_compiler.hlo.reader import read_hlo_text
from bbo_problems.xla_passes.actions import ACTIONS, PIPELINE, SLOTS
from bbo_problems.xla_passes.programs import named
from bbo_problems.xla_passes.worker import Optimiser

EPISODES = 30
GOOD = ("algsimp", "reshape-mover", "float-normalization-bf16", PIPELINE, PIPELINE, "algsimp")


def varied(rng: Generator) -> tuple[str, ...]:
    """Return the good sequence with a pass drawn anew and a random one behind."""
    passes = [*GOOD, str(rng.choice(ACTIONS[1:]))]
    passes[rng.integers(len(GOOD))] = str(rng.choice(ACTIONS[1:]))
    return tuple(passes)


def milliseconds(program: str, kind: str) -> dict[str, object]:
    """Return the mean of a step."""
    made, rng, steps = Optimiser(read_hlo_text(named(program))), np.random.default_rng(0), 0
    started = time.process_time()
    for _ in range(EPISODES):
        passes = tuple(rng.choice(ACTIONS[1:], SLOTS).tolist()) if kind == "random" else varied(rng)
        for length in range(1, len(passes) + 1):
            made.answer((STATE, passes[:length]), lambda *_: None)
            steps += 1
    seconds = time.process_time() - started
    return {"program": program, "episodes": kind, "steps": steps, "ms per step": 1000 * seconds / steps}


if __name__ == "__main__":
    programs = ("rnn-l1-infer", "gpt2-l1-infer", "bert-l1-infer", "rnn-l1", "dlrm-l1", "gpt2-l1")
    table = pd.DataFrame([milliseconds(program, kind) for program in programs for kind in ("random", "varied")])
    table.to_csv(Path(__file__).parent / "steps.csv", index=False, float_format="%.3g")
