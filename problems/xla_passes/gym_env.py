"""The order of XLA's passes as a Gymnasium environment.

Importing this module registers it: `gymnasium.make("bbo_problems.xla_passes.gym_env:bbo_suite/XlaPasses-v0")` does both
(Gymnasium 1 has no plugins any more), and `gymnasium.make("bbo_suite/XlaPasses-v0")` is enough once it is imported.
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
    """One episode compiles a program once, an action is the next pass.

    Action: an index of `ACTIONS`, the passes by name. 0 stops; the sixteenth pass ends the episode too.

    Observation: float32, never negative. The operations of the module at hand by kind, as multiples of all operations
    of the program (`OPCODES`, then all others together); which lowerings have run, 0 or 1; its cost as a multiple of
    the default's; the share of passes that may follow.

    Reward: the operations that the action saves, as a share of the default's cost. An episode's sum is what it saves
    over the program that is only lowered, and `info["speedup"]` compares with the default. What is saved is counted as
    by the problem: with what code generation needs and the passes so far have left out run behind them. An action that
    the compiler fails, dies or hangs at ends the episode and takes back what the episode has got.

    Args:
      problem: any id of the family, `xla-passes/gpt2-l1` or `xla-passes:file.hlo.gz`.
      render_mode: there is none; the argument is Gymnasium's.

    Raises:
      UserError: there is no such problem, or its program cannot be compiled.
    """

    def __init__(self, problem: str = "xla-passes/gpt2-l1", render_mode: None = None) -> None:
        loaded = bbo_suite.problem(problem)
        if not isinstance(loaded, XlaPassesProblem):
            raise bbo_suite.UserError(f"{problem} is no task of xla-passes")
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
        """Begin with the program as it is; nothing is random."""
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
