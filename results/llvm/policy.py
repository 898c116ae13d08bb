"""What is a policy for LLVM's passes worth on programs that it never saw, compared with -Oz?

    python results/llvm/policy.py    # policy.csv; some minutes of one core

The programs are split in two halves by turns. A policy imitates the best of random sequences of one half, without the
passes that do nothing, and is tried once on the other half, by its most probable actions; then the other way round.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pandas as pd

from bbo_problems.llvm.ir import names
from bbo_problems.pass_order.gym_env import ID
from bbo_problems.pass_order.policies import beam, demonstrated, exchanged, greedy, imitate, play, pruned

HERE = Path(__file__).parent
PIPELINES = {"compress", "digest", "json", "matrices", "script", "store"}
PROGRAMS = [f"llvm/{name}" for name in names() if name not in PIPELINES]
"""Those of the study in README.md."""
TRIED, LENGTH, LONGEST, COMPILATIONS = 100, 10, 12, 20


def sequences(env: Any, programs: list[str], rng: np.random.Generator) -> dict[str, list[tuple[int, ...]]]:  # noqa: ANN401
    """Return random sequences of each program, those of `COMPILATIONS` first draws included."""
    draws = {program: rng.integers(1, env.action_space.n, (TRIED, LENGTH)).tolist() for program in programs}
    return {program: [tuple(passes) for passes in drawn] for program, drawn in draws.items()}


def best(env: Any, program: str, tried: list[tuple[int, ...]]) -> tuple[int, ...]:  # noqa: ANN401
    """Return the best of some sequences, without what does nothing."""
    return pruned(env, program, min(tried, key=lambda passes: play(env, program, passes).cost))


def main() -> None:
    """Learn on each half, try on the other, write the table."""
    env = gymnasium.make(ID, problem=PROGRAMS).unwrapped
    rng, rows = np.random.default_rng(0), []
    tried = sequences(env, PROGRAMS, rng)
    for train, test in ((PROGRAMS[::2], PROGRAMS[1::2]), (PROGRAMS[1::2], PROGRAMS[::2])):
        started = time.process_time()
        found = {program: best(env, program, tried[program]) for program in train}
        taught = exchanged(env, train, found, LONGEST)
        one = min(set(taught.values()), key=lambda s: np.mean([np.log(play(env, p, s).cost) for p in train]))
        policy = imitate(*demonstrated(env, taught, 4, rng), env.action_space.n, 1500, seed=0)
        for program in test:
            default = env.reset(options={"problem": program})[1]["default"]
            alone = greedy(env, program, policy)
            costs = {
                "policy": alone.cost,
                "fixed sequence": play(env, program, one).cost,
                f"beam, {COMPILATIONS}": beam(env, program, policy, 2, COMPILATIONS).cost,
                f"random, {COMPILATIONS}": min(play(env, program, s).cost for s in tried[program][:COMPILATIONS]),
                f"random, {TRIED}": min(play(env, program, s).cost for s in tried[program]),
            }
            passes = " ".join(env.actions[action] for action in alone.actions)
            rows.append({"program": program, "-Oz": default, **costs, "passes": passes})
            print(rows[-1], flush=True)
        print(f"{time.process_time() - started:.0f} s without LLVM's")
        pd.DataFrame(rows).to_csv(HERE / "policy.csv", index=False, float_format="%.10g")
    table = pd.DataFrame(rows)
    for name in costs:
        better = table["-Oz"] / table[name]
        print(name, np.exp(np.log(better).mean()), better.max(), (better > 1).sum(), (better < 1).sum())


if __name__ == "__main__":
    main()
