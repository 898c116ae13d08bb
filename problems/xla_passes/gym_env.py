"""The order of XLA's passes as a Gymnasium environment.

`gymnasium.make("bbo_problems.xla_passes.gym_env:bbo_suite/XlaPasses-v0")` imports this module, which registers the
environment, and makes one. After that, `gymnasium.make("bbo_suite/XlaPasses-v0")` is enough.
"""

from __future__ import annotations

from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium.envs.registration import register
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

import bbo_suite

from .actions import ACTIONS, CENSUS, LOWERINGS, NOTHING, PIPELINE, SLOTS
from .opcodes import OPCODES
from .problem import XlaPassesProblem

ID = "bbo_suite/XlaPasses-v0"
Info = dict[str, Any]


class XlaPassesEnv(gymnasium.Env[NDArray[np.float32], np.int64]):
    """An episode compiles a program once; an action is the next pass.

    Action: an index of `ACTIONS`. Action 0 stops the episode, and so does the sixteenth pass.

    Observation: float32, never negative. The number of operations of each kind in the current module (`OPCODES`, then
    all others together), divided by the operations of the program; for each lowering 1 if it has run, otherwise 0; the
    cost divided by the default's; the share of the passes that is left.

    Reward: the operations that the action saves, divided by the default's cost. The rewards of an episode add up to
    what it saves compared with the program that is only lowered; `info["speedup"]` compares with the default. Costs are
    those of the problem, so lowerings that the passes so far have left out are included. If the compiler fails, crashes
    or hangs at an action, the episode ends, and the reward takes back what the episode has earned.

    Args:
      problem: any id of the family, such as `xla-passes/gpt2-l1` or `xla-passes:file.hlo.gz`.
      render_mode: only None; Gymnasium passes it.

    Raises:
      UserError: there is no such problem, or its program cannot be compiled.
    """

    def __init__(self, problem: str = "xla-passes/gpt2-l1", render_mode: None = None) -> None:
        loaded = bbo_suite.problem(problem)
        if not isinstance(loaded, XlaPassesProblem):
            raise bbo_suite.UserError(f"{problem} is not a problem of the family xla-passes")
        self._problem = loaded
        self.render_mode = render_mode
        self.action_space = cast(Any, Discrete(len(ACTIONS)))
        self.observation_space = Box(0, np.inf, (len(OPCODES) + len(LOWERINGS) + 3,), np.float32)
        self._default, _ = self._measured((PIPELINE,))
        self._start, self._census = self._measured(())
        self._operations = sum(self._census.values())

    def _measured(self, passes: tuple[str, ...]) -> tuple[float, dict[str, int]]:
        return self._problem.ask((CENSUS, passes))

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[NDArray[np.float32], Info]:
        """Start with the original program; nothing is random."""
        super().reset(seed=seed)
        self._passes: tuple[str, ...] = ()
        self._cost, self._census = self._measured(())
        return self._observation(), self._info()

    def step(self, action: np.int64) -> tuple[NDArray[np.float32], float, bool, bool, Info]:
        """Run one pass, or stop."""
        name = ACTIONS[int(action)]
        if name == NOTHING:
            return self._observation(), 0.0, True, False, self._info()
        before = self._cost
        try:
            self._cost, self._census = self._measured((*self._passes, name))
        except bbo_suite.UserError as error:
            self._cost = self._start
            return self._observation(), self._saved(before), True, False, self._info() | {"failure": str(error)}
        self._passes = (*self._passes, name)
        return self._observation(), self._saved(before), len(self._passes) == SLOTS, False, self._info()

    def _saved(self, before: float) -> float:
        return (before - self._cost) / self._default

    def _info(self) -> Info:
        return {
            "operations": self._cost,
            "default": self._default,
            "speedup": self._default / self._cost,
            "passes": ",".join(self._passes),
        }

    def _observation(self) -> NDArray[np.float32]:
        kinds = [self._census.get(kind, 0) for kind in OPCODES]
        counts = np.array([*kinds, sum(self._census.values()) - sum(kinds)]) / max(self._operations, 1)
        lowered = [PIPELINE in self._passes or name in self._passes for name in LOWERINGS]
        place = [self._cost / self._default, 1 - len(self._passes) / SLOTS]
        return np.concatenate([counts, lowered, place]).astype(np.float32)


register(ID, entry_point=f"{__name__}:XlaPassesEnv")
