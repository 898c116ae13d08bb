"""The order of a compiler's passes as a Gymnasium environment.

`gymnasium.make("bbo_problems.pass_order.gym_env:bbo_suite/PassOrder-v0")` imports this module, which registers the
environment, and makes one. After that, `gymnasium.make("bbo_suite/PassOrder-v0")` is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium.envs.registration import register
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

import bbo_suite

from .state import NEIGHBOURHOODS, PassOrderProblem, State

ID = "bbo_suite/PassOrder-v0"
Info = dict[str, Any]
Observation = NDArray[np.float32]


class PassOrderEnv(gymnasium.Env[Observation, np.int64]):
    """An episode compiles a program once; an action is the next pass.

    Action: an index of the problem's `actions`. Action 0 stops the episode, and so does the last slot.

    Observation: float32, never negative. The number of operations of each kind in the current module (`opcodes`, then
    all others together), and of each hashed surroundings, both divided by the operations of the program; how often each
    pass has run, divided by the slots; the cost divided by the default's; the share of the slots that is left.

    Reward: what the action saves, divided by the default's cost. The rewards of an episode add up to what it saves
    compared with the program without passes; `info["speedup"]` compares with the default. Costs are those of the
    problem, so what the compiler must still run is included. If the compiler fails, crashes or hangs at an action, or
    the program then computes something else, the episode ends, and the reward takes back what the episode has earned.

    `info["graph"]` has the current module: the `(n,)` hashed kinds of its operations, and its `(m, 2)` edges.

    Args:
      problem: an id of a family whose candidates are sequences of passes, such as `xla-passes/gpt2-l1`,
        `xla-passes:file.hlo.gz@kernels`, `llvm/bits` or `llvm-pipelines/script`; or several of one family: each episode
        then draws one, or starts the one that `reset(options={"problem": id})` names.
      render_mode: only None; Gymnasium passes it.

    Raises:
      UserError: there is no such problem, its program cannot be compiled, or problems have different actions.
    """

    def __init__(self, problem: str | Sequence[str] = "xla-passes/gpt2-l1", render_mode: None = None) -> None:
        self.problems = (problem,) if isinstance(problem, str) else tuple(problem)
        loaded = [_loaded(name) for name in self.problems]
        if len({p.actions for p in loaded}) > 1:
            raise bbo_suite.UserError("problems of one environment need the same actions: name those of one family")
        self.actions, self.slots, self._opcodes = loaded[0].actions, loaded[0].slots, loaded[0].opcodes
        self.render_mode = render_mode
        self.action_space = cast(Any, Discrete(len(self.actions)))
        width = len(self._opcodes) + 1 + NEIGHBOURHOODS + len(self.actions) + 1
        self.observation_space = Box(0, np.inf, (width,), np.float32)
        self._loaded = dict(zip(self.problems, loaded, strict=True))
        self._ends: dict[str, tuple[State, float]] = {}

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Observation, Info]:
        """Start with an original program; which of several it is, is the only thing that is random."""
        super().reset(seed=seed)
        name = (options or {}).get("problem") or self.problems[int(self.np_random.integers(len(self.problems)))]
        self._problem, self._passes = self._loaded[name], tuple[str, ...]()
        if name not in self._ends:
            default = self._problem.request(self._problem.default_row())
            self._ends[name] = self._problem.state(()), self._problem.state(default).cost
        self._start, self._default = self._ends[name]
        self._state = self._start
        return self._observation(), self._info()

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, Info]:
        """Run one pass, or stop."""
        name = self.actions[int(action)]
        if not int(action):
            return self._observation(), 0.0, True, False, self._info()
        before = self._state.cost
        try:
            self._state = self._problem.state((*self._passes, name))
        except bbo_suite.UserError as error:
            self._state = self._start
            return self._observation(), self._saved(before), True, False, self._info() | {"failure": str(error)}
        self._passes = (*self._passes, name)
        return self._observation(), self._saved(before), len(self._passes) == self.slots, False, self._info()

    def _saved(self, before: float) -> float:
        return (before - self._state.cost) / self._default

    def _info(self) -> Info:
        return {
            "problem": self._problem.id,
            "cost": self._state.cost,
            "default": self._default,
            "speedup": self._default / self._state.cost,
            "passes": ",".join(self._passes),
            "graph": (self._state.labels.copy(), self._state.edges.copy()),
        }

    def _observation(self) -> Observation:
        kinds = [self._state.kinds.get(kind, 0) for kind in self._opcodes]
        counts = np.array([*kinds, sum(self._state.kinds.values()) - sum(kinds), *self._state.neighbourhoods])
        ran = np.array([self._passes.count(name) for name in self.actions[1:]]) / self.slots
        place = [self._state.cost / self._default, 1 - len(self._passes) / self.slots]
        return np.concatenate([counts / max(sum(self._start.kinds.values()), 1), ran, place]).astype(np.float32)


def _loaded(name: str) -> PassOrderProblem:
    loaded = bbo_suite.problem(name)
    if not isinstance(loaded, PassOrderProblem):
        raise bbo_suite.UserError(f"{name} is not a problem of the order of passes: name one of xla-passes or llvm")
    return loaded


register(ID, entry_point=f"{__name__}:PassOrderEnv")
