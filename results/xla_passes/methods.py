"""What a graph network and reinforcement learning add to imitation, and what the latter does alone.

    pip install stable-baselines3
    python results/xla_passes/methods.py [--steps 10000]    # methods.csv: only the methods that it lacks

All learn on the training programs of `policies.py` and are tried once on programs of other models, by the most
probable actions.
Imitation takes the sequences that `policies.py` taught, which are in `policies-operations.csv`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pandas as pd
import torch
import typer
from policies import GROUPS, TRAIN, _id, environment
from stable_baselines3 import PPO

from bbo_problems.xla_passes.actions import ACTIONS, PIPELINE
from bbo_strategies.pass_policy.beam import greedy
from bbo_strategies.pass_policy.demonstrations import Pairs, demonstrated
from bbo_strategies.pass_policy.dqn import q_learning
from bbo_strategies.pass_policy.episodes import play
from bbo_strategies.pass_policy.graph_policy import Seen, WithGraph, imitate_graphs
from bbo_strategies.pass_policy.policy import Policy, imitate

HERE = Path(__file__).parent
CLONED, RATE = 600, 1e-3
"""Steps and rate with which PPO's policy is cloned from demonstrations."""


def demonstrations(env: Any) -> Pairs:  # noqa: ANN401 - an environment without its wrappers
    """Return what the sequences of `policies.py` show on the training programs."""
    table = pd.read_csv(HERE / "policies-operations.csv").set_index("program")
    passes = {program: str(table.loc[program, "policy's passes"]).split() for program in TRAIN}
    taught = {_id(program, "operations"): tuple(map(ACTIONS.index, names)) for program, names in passes.items()}
    return demonstrated(env, taught, 4, np.random.default_rng(1))


def by_graph(env: Any) -> Callable[[Seen], np.ndarray]:  # noqa: ANN401
    """Return the policy of a graph network that imitates the same demonstrations."""
    seen, right = demonstrations(WithGraph(env))
    return imitate_graphs(seen, right, len(ACTIONS), 1500, seed=0)


def ppo(env: Any, pairs: Pairs | None, steps: int) -> Policy:  # noqa: ANN401
    """Return a policy by PPO, which starts from clones of demonstrations if there are any."""
    scaled = gymnasium.wrappers.TransformObservation(env, np.log1p, env.observation_space)
    model = PPO("MlpPolicy", scaled, n_steps=256, batch_size=64, gamma=1.0, ent_coef=0.01, seed=0, device="cpu")
    if pairs is not None:
        clone(model, pairs)
    model.learn(steps)

    def policy(observation: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            given = torch.as_tensor(np.log1p(observation))[None]
            return model.policy.get_distribution(given).distribution.logits[0].double().numpy()

    return policy


def clone(model: PPO, pairs: Pairs) -> None:
    """Fit the policy to demonstrations by maximum likelihood."""
    seen, right = torch.as_tensor(np.log1p(np.stack(pairs[0]))), torch.as_tensor(pairs[1])
    optimiser = torch.optim.Adam(model.policy.parameters(), RATE)
    for _ in range(CLONED):
        loss = -model.policy.evaluate_actions(seen, right)[1].mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def main(steps: int = 10_000) -> None:
    """Learn with each method, and try it on all programs but the deeper ones."""
    torch.set_num_threads(1)
    env, file = environment(TRAIN, "operations"), HERE / "methods.csv"
    pairs = demonstrations(env)
    methods: dict[str, Callable[[], Policy]] = {
        "imitation": lambda: imitate(*pairs, len(ACTIONS), 1500, seed=0),
        "imitation, graph network": lambda: by_graph(env),
        "PPO": lambda: ppo(env, None, steps),
        "PPO from imitation": lambda: ppo(env, pairs, steps),
        "DQN": lambda: q_learning(env, steps, seed=0),
    }
    rows = pd.read_csv(file).to_dict("records") if file.exists() else []
    for method in methods.keys() - {row["method"] for row in rows}:
        started = time.process_time()
        policy = methods[method]()
        typer.echo(f"{method}: {time.process_time() - started:.0f} s without the compiler's")
        tried = {"train": TRAIN, "unseen": GROUPS["unseen"], "fresh": GROUPS["fresh"]}
        for group, program in ((group, name) for group, names in tried.items() for name in names):
            own = environment([program], "operations")
            name = _id(program, "operations")
            default = play(own, name, (ACTIONS.index(PIPELINE),)).cost
            found = greedy(WithGraph(own) if "graph" in method else own, name, policy)
            passes = " ".join(ACTIONS[action] for action in found.actions)
            row = {"method": method, "program": program, "group": group, "default": default, "policy": found.cost}
            rows.append(row | {"passes": passes})
            typer.echo(rows[-1])
            pd.DataFrame(rows).to_csv(file, index=False, float_format="%.10g")


if __name__ == "__main__":
    typer.run(main)
