"""1,000 evaluations of four searches beside one episode of the policy, by evaluations and by processor time.

    python results/xla_passes/thousand.py bert-l1-infer gpt2-l1 ...    # adds to budget1000.csv what it lacks

The policy's passes are those of policies-operations.csv. Its time holds its observations: a cost and a description
after each pass, but not the network. A search's time holds its own, and each run has a compiler of its own.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer

from bbo_problems.pass_order.state import STATE
from bbo_problems.tensor_compiler.hlo.reader import read_hlo_text
from bbo_problems.xla_passes.actions import PIPELINE
from bbo_problems.xla_passes.problem import XlaPassesProblem
from bbo_problems.xla_passes.programs import named
from bbo_problems.xla_passes.worker import Optimiser
from bbo_suite.registry import Registry
from bbo_suite.supervised import Answer
from bbo_suite.testing import play, start

HERE = Path(__file__).parent
FILE = HERE / "budget1000.csv"
STRATEGIES = ("random", "annealing", "evolution", "graybox")
BUDGET, BATCH, MARKS = 1_000, 10, (20, 50, 200, 1_000)


class InProcess:
    """Answers requests in this process, whose time is then all there is."""

    def __init__(self, program: str) -> None:
        self._optimiser = Optimiser(read_hlo_text(named(program)))

    def map(self, requests: list[Any], _children: int = 1) -> list[Answer]:
        """Return the answers."""
        return [self._one(request) for request in requests]

    def _one(self, request: Any) -> Answer:  # noqa: ANN401 - a candidate, or what is asked of it
        try:
            return Answer(self._optimiser.answer(request, lambda *_: None))
        except RuntimeError as error:
            return Answer(failure="raised", reason=str(error))


def searched(program: str, name: str) -> dict[str, object]:
    """Return the row of a run."""
    problem, found = XlaPassesProblem(program), Registry().strategy(name)
    problem.id, problem._workers = f"xla-passes/{program}", InProcess(program)
    problem.leave_cache()
    task = problem.task(found.uses_structure, None, found.uses_parts)
    search = start(found, task.space, BUDGET, 0, task.structure, task.default)
    started, costs, seconds = time.process_time(), [], []

    def parts(configs: np.ndarray) -> Any:  # noqa: ANN401 - the parts of a batch, which are remembered by now
        return problem.evaluate_parts(configs).parts

    for _, values in play(search, lambda configs: problem.evaluate(configs).values, BATCH, parts):
        costs += values.tolist()
        seconds += [time.process_time() - started] * len(values)
    best = np.minimum.accumulate(costs)
    first = int(best.argmin())
    row = {f"best of {n}": best[n - 1] for n in MARKS} | {"first at": first + 1}
    return row | {"seconds until then": seconds[first], "seconds": seconds[-1]}


def episode(program: str) -> dict[str, object]:
    """Return the row of the policy."""
    passes = pd.read_csv(HERE / "policies-operations.csv").set_index("program")["policy's passes"][program].split()
    answer, started = InProcess(program).map, time.process_time()
    told = answer([(STATE, tuple(passes[:n])) for n in range(len(passes) + 1)])
    seconds = time.process_time() - started
    return {"best of 20": told[-1].value[0], "first at": 1, "seconds until then": seconds, "seconds": seconds}


def main(programs: list[str]) -> None:
    """Make the rows that are missing."""
    for program in programs:
        for name in ("policy", *STRATEGIES):
            done = pd.read_csv(FILE) if FILE.exists() else pd.DataFrame(columns=["program", "strategy"])
            if ((done["program"] == program) & (done["strategy"] == name)).any():
                continue
            default = InProcess(program).map([(PIPELINE,)])[0].value
            row = episode(program) if name == "policy" else searched(program, name)
            row = {"program": program, "strategy": name, "default": default} | row
            pd.concat([done, pd.DataFrame([row])]).to_csv(FILE, index=False, float_format="%.4g")
            typer.echo(row)


if __name__ == "__main__":
    typer.run(main)
