"""Reinforcement learning as GO: one policy over all decisions of a computation graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Task, option

from ..annealing import Annealing, AnnealingOptions
from .policy_file import PolicyFile, content

if TYPE_CHECKING:  # JAX takes a second to import: only a run pays for it
    from bbo_suite.tuning.pretraining import Lesson, Progress

    from .imitation import Apprentice
    from .player import Player
    from .policy import Policy

    Training = tuple[Apprentice, Lesson]


_BATCH = 20  # as in annealing: more changes of one state know less of each other


@dataclass(frozen=True)
class ReinforcementOptions(AnnealingOptions):
    """Options of `rl`."""

    rate: float = option(0.002, "learning rate; 0: the policy stays as it is", low=0, high=1)
    epochs: int = option(2, "steps on each of the last rounds", low=1, high=100)
    clip: float = option(0.2, "clipping range of the probability ratio", low=0.001, high=10)
    entropy: float = option(0.01, "weight of the entropy bonus", low=0, high=10)
    pretrained: PolicyFile = option(PolicyFile(), "file of a policy to start from, made by `pretrain`")  # noqa: RUF009


class ReinforcementLearning(Annealing):
    """Annealing whose changes are chosen by a graph network, which learns by PPO which ones pay.

    After GO (Zhou et al. 2020, "Transferable Graph Optimizers for ML Compilers"): GraphSAGE embeds the computation
    graph, segmented recurrent attention carries context over all parameters, one decision for each is made in parallel
    and refined in a second pass, and proximal policy optimization trains it. Without a declared graph the parameters
    are the nodes, joined where they interact. Option `pretrained` starts from a policy that `pretrain` trained on other
    problems of the family. Hyperparameters are ours: the authors published none.

    Where this differs from the publication:
      - The compiler's default is strong, and of single decisions of a whole candidate there are too many to learn one
        by one what each was worth. So the network does not decide the candidate. It says how much every value of every
        parameter is wanted in the state of `annealing`, and the policy is the softmax of that over twelve times as many
        proposals (`Changes`) as are evaluated. These are drawn without replacement, but PPO takes the probability of
        each as if it were drawn alone.
      - The baseline is the mean of the round, instead of a critic.
      - The network sees how often each value was tried and what it was worth, a memory that transfers.
      - Attention runs over the parameters, in the order of the space, and not over the nodes.

    `pretrain` evaluates all proposals, and the policy learns by cross-entropy to choose each as often as its share in
    what all of them gain (imitation, see `Apprentice`). A search from such a policy trusts it more (`SURE`), and
    fine-tunes it by PPO. On eight fusion tasks of models that were not pre-trained on, 1,000 evaluations gain 3.1 %
    with it and 2.1 % without (`results/strategies`).

    A run repeats exactly on one kind of processor: XLA compiles for its instructions, and with others last digits
    differ, and soon choices (measured, AVX instead of AVX2: from the 177th of 1,000 candidates on).
    """

    Options: ClassVar[type] = ReinforcementOptions
    options: ReinforcementOptions
    uses_structure: ClassVar[bool] = True

    def __init__(
        self, task: Task, budget: int, rng: Generator, options: ReinforcementOptions, training: Training | None = None
    ) -> None:
        super().__init__(task, budget, rng, options)
        _quietly_on_cpu()
        size = int(np.clip(budget // 20, 10, 100))
        self._player = self._player_of(size, training) if len(self._moves.movable) else None

    def _player_of(self, size: int, training: Training | None) -> Player:
        from .learner import Learner
        from .player import Player
        from .ppo import Settings
        from .pupil import Pupil

        if training:
            return Pupil(*training, self._changes, size, self.rng)
        options, policy = self.options, policy_of(self.task, self.options, self.rng)
        learner = Learner(policy, Settings(options.clip, options.entropy), options.rate)
        return Player(self.task, learner, self._changes, size, options.epochs, self.rng)

    def ask(self, n: int) -> NDArray:
        """Return the state if its cost is not known yet, and changes of it that the policy chooses."""
        if self._player is None:
            return super().ask(n)
        n = min(n, _BATCH)
        state, first = (self._state, 0) if self._next is None else (self._next, 1)
        if n == first:
            self._kinds = np.zeros(0, np.int64)
            return state[None]
        configs, self._kinds = self._player.choose(state, n - first)
        return np.concatenate([state[None][:first], configs])

    def tell(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Let the policy learn, and the state move."""
        first, cost = (0, self._cost) if self._next is None else (1, float(values[0]))
        if self._player is not None and len(values) > first:
            self._player.learn(values[first:], cost)
        super().tell(configs, values)

    def diagnostics(self) -> dict[str, float]:
        """Return the mean reward of the last round, and the standard deviation of the last scores."""
        if self._player is None:
            return {}
        return {"policy/mean reward": self._player.mean, "policy/spread": self._player.spread}

    @classmethod
    def pretrain(
        cls,
        lessons: Sequence[Lesson],
        budget: int,
        rng: Generator,
        options: ReinforcementOptions,
        out: Path,
        progress: Progress,
    ) -> None:
        """Train one policy on several problems of one family and write it to `out`."""
        _quietly_on_cpu()
        from .imitation import Apprentice
        from .policy import SURE
        from .pretrained import save
        from .training import shared_widths, train

        shared_widths([lesson.task for lesson in lessons])
        apprentice = Apprentice(policy_of(lessons[0].task, options, rng, SURE), rng)

        def start(lesson: Lesson, budget: int) -> ReinforcementLearning:
            return cls(lesson.task, budget, rng, options, (apprentice, lesson))

        train(lessons, start, apprentice, budget, progress)
        save(apprentice.policy, out)


def policy_of(task: Task, options: ReinforcementOptions, rng: Generator, bound: float | None = None) -> Policy:
    """Return a policy for tasks like this one, from a file or else a fresh one with a bound of scores."""
    from .inputs import widths_of
    from .learner import fresh
    from .policy import BOUND
    from .pretrained import load

    widths = widths_of(task)
    if options.pretrained:
        path, data = content(options.pretrained)
        return load(data, path, *widths, task.problem)
    return fresh(*widths, rng, bound or BOUND)


def _quietly_on_cpu() -> None:
    """Let JAX look for no accelerator: it would reserve one, and runs would not repeat exactly on it."""
    import jax

    if not jax.config.jax_platforms:  # type: ignore[attr-defined]
        jax.config.update("jax_platforms", "cpu")
