"""What policies for the order of passes are worth on programs that they never saw.

    python results/xla_passes/policies.py --rows rows.jsonl [--objective operations] [--group unseen]

The rows are those of `headroom.py`. A policy imitates the best sequences of the programs of five models (`TRAIN`), and
orders the passes of those of five others (`UNSEEN`) and of deeper programs. Writes `policies-OBJECTIVE.csv`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Hashable
from pathlib import Path
from typing import Annotated, Any

import gymnasium
import numpy as np
import pandas as pd
import typer

from bbo_problems.pass_order.gym_env import ID
from bbo_problems.pass_order.policies import Policy, beam, demonstrated, exchanged, greedy, imitate, play, pruned
from bbo_problems.tensor_compiler.tasks.programs import program as program_file
from bbo_problems.xla_passes.actions import ACTIONS, PIPELINE, SLOTS
from bbo_problems.xla_passes.programs import names

HERE = Path(__file__).parent
TRAIN = [f"{model}-l1{kind}" for model in ("gpt2", "moe", "resnet", "rnn", "dlrm") for kind in ("-infer", "")]
UNSEEN = [
    f"{model}-l1{kind}" for model in ("bert", "translate", "nmt", "resnet_v2", "convdraw") for kind in ("-infer", "")
]
FRESH = [
    "wavernn-infer-b1-f80",
    "wavernn-train-b32-f4",
    "mobilenet-1.0-infer-b1",
    "mobilenet-1.0-train-b16",
    "unet-32-infer-b1",
    "ssd-vgg16-infer-b1",
    "ssd-resnet34-infer-b1",
    "ssd-resnet34-train-b8",
    "transformer",
    "dlrm-kaggle-adagrad-b2048",
]
"""Programs of the tensor compiler that no choice of the method has seen: eight of models that are nowhere else."""
DEEPER = [
    *(f"{model}-l2{kind}" for model in ("gpt2", "moe", "resnet", "bert", "translate") for kind in ("-infer", "")),
    *(f"{model}-l6-infer" for model in ("gpt2", "moe", "resnet", "bert", "translate")),
    "gpt2-l6",
]
GROUPS = {"train": TRAIN, "unseen": UNSEEN, "fresh": FRESH, "deeper": DEEPER}
COMPILATIONS = 20
Sequence = tuple[int, ...]


def environment(programs: list[str], objective: str) -> Any:  # noqa: ANN401 - an environment without its wrappers
    """Return the environment; its programs' children live as long as it does."""
    return gymnasium.make(ID, problem=[_id(program, objective) for program in programs]).unwrapped


def _id(program: str, objective: str) -> str:
    return (
        f"xla-passes/{program}@{objective}" if program in names() else f"xla-passes:{program_file(program)}@{objective}"
    )


def best_sequences(rows: pd.DataFrame, objective: str) -> dict[str, Sequence]:
    """Return the shortest of the best sequences of each program that the searches found."""
    best = {}
    for program in TRAIN:
        own = rows[rows["program"] == program]
        passes = min(own[own[objective] == own[objective].min()]["passes"], key=len)
        best[_id(program, objective)] = tuple(ACTIONS.index(name) for name in passes.split(",") if name)
    return best


def fixed(env: Any, sequences: dict[str, Sequence]) -> Sequence:  # noqa: ANN401
    """Return the one demonstration that is best on the training programs together, by the mean logarithm."""
    pool = sorted(set(sequences.values()))
    return min(pool, key=lambda s: np.mean([np.log(play(env, name, s).cost) for name in sequences]))


def searched(rows: pd.DataFrame, program: str, objective: str) -> dict[Hashable, Any]:
    """Return the best cost of each search, and of the first random candidates."""
    own = rows[rows["program"] == program]
    random = own[own["method"] == "RandomSearch"][objective]
    annealing = own[(own["method"] == "Annealing") & (own["objective"] == objective)][objective]
    if random.empty:
        return {}
    return {
        f"random {COMPILATIONS}": random[:COMPILATIONS].min(),
        "candidates": len(random),
        "random": random.min(),
        "annealing": annealing.min(),
        "best search": own[objective].min(),
    }


def main(
    rows: Annotated[Path, typer.Option(help="Rows of headroom.py.")] = Path("rows.jsonl"),
    objective: str = "operations",
    group: Annotated[list[str] | None, typer.Option(help="Only these of train, unseen, fresh, deeper.")] = None,
    detours: int = 4,
    steps: int = 1500,
) -> None:
    """Train a policy, try it, and write the table; rows of other groups stay."""
    table = pd.DataFrame([json.loads(line) for line in rows.read_text().splitlines()])
    env, started = environment(TRAIN, objective), time.process_time()
    found = {name: pruned(env, name, passes) for name, passes in best_sequences(table, objective).items()}
    taught = exchanged(env, found, found, longest=SLOTS - 4)
    for name, passes in taught.items():
        typer.echo(f"{name}: {','.join(ACTIONS[action] for action in passes)}")
    one = fixed(env, taught)
    seen, right = demonstrated(env, taught, detours, np.random.default_rng(1))
    policy = imitate(seen, right, len(ACTIONS), steps, seed=0)
    typer.echo(f"{len(right)} pairs, {time.process_time() - started:.0f} s; fixed: {[ACTIONS[i] for i in one]}")
    file = HERE / f"policies-{objective}.csv"
    groups = group or list(GROUPS)
    result = pd.read_csv(file).query("group not in @groups").to_dict("records") if file.exists() else []
    for kind, program in ((wanted, name) for wanted in groups for name in GROUPS[wanted]):
        row: dict[Hashable, Any] = {"program": program, "group": kind} | tried(program, objective, policy, one)
        result.append(row | searched(table, program, objective))
        typer.echo(result[-1])
        pd.DataFrame(result).to_csv(file, index=False, float_format="%.10g")


def tried(program: str, objective: str, policy: Policy, one: Sequence) -> dict[Hashable, Any]:
    """Return what the policy reaches alone and with beams of 20 compilations, and the fixed sequence."""
    name, env = _id(program, objective), environment([program], objective)
    alone = greedy(env, name, policy)
    return {
        "default": play(env, name, (ACTIONS.index(PIPELINE),)).cost,
        "policy alone": alone.cost,
        "fixed sequence": play(env, name, one).cost,
        **{f"beam {width}": beam(env, name, policy, width, COMPILATIONS).cost for width in (2, 3)},
        "policy's passes": " ".join(ACTIONS[action] for action in alone.actions),
    }


if __name__ == "__main__":
    typer.run(main)
