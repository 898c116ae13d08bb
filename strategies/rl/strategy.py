"""Reinforcement learning as GO: one policy over all decisions of a computation graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Moves, Strategy, Task, option
from bbo_suite.files.pinned import PinnedFile, content
from bbo_suite.jax_settings import configure_jax

from ..annealing import Annealing, AnnealingOptions
from ..mutation import AdaptiveMutation

if TYPE_CHECKING:  # JAX takes a second to import: only a run pays for it
    from bbo_suite.tuning.pretraining import Lesson, Progress

    from .agent import Agent
    from .imitation import ImitationLearner
    from .neighbours import ChosenNeighbours
    from .policy import Policy

    Training = tuple[ImitationLearner, Lesson]


@dataclass(frozen=True)
class ReinforcementOptions(AnnealingOptions):
    """Options of `rl`."""

    rate: float = option(0.002, "learning rate; 0: the policy does not change", low=0, high=1)
    epochs: int = option(2, "steps on each of the last rollouts", low=1, high=100)
    clip: float = option(0.2, "clipping range of the probability ratio", low=0.001, high=10)
    entropy: float = option(0.01, "weight of the entropy bonus", low=0, high=10)
    pretrained: PinnedFile = option(PinnedFile(), "file of a policy to start from, made by `pretrain`")  # noqa: RUF009


class ReinforcementLearning(Strategy):
    """Annealing whose changes are chosen by a graph network, which learns by PPO which ones pay.

    After GO (Zhou et al. 2020, "Transferable Graph Optimizers for ML Compilers"): GraphSAGE embeds the computation
    graph, segmented recurrent attention carries context over all parameters, decisions for all parameters are made in
    parallel and refined in a second pass, and proximal policy optimization trains the network. Without a declared graph
    the parameters are the nodes, and an edge joins two that interact. Option `pretrained` starts from a policy that
    `pretrain` trained on other problems of the family. The hyperparameters are ours: the authors published none.

    Differences from the publication:
      - The compiler's default is strong, and a candidate consists of too many decisions to learn the worth of each from
        the cost of the whole. So the network does not decide the candidate. It gives a preference for every value of
        every parameter in the state of `annealing`, and the policy is the softmax of these over twelve times as many
        proposals (`AdaptiveMutation`) as are evaluated. These are drawn without replacement, but PPO takes the
        probability of each as if it were drawn alone.
      - The baseline is the mean of the rollout, instead of a critic.
      - The network sees how often each value was tried and what it gained, knowledge that transfers between tasks.
      - Attention runs over the parameters, in the order of the space, instead of over the nodes.

    `pretrain` evaluates all proposals, and the policy learns by cross-entropy to choose each with a probability equal
    to its share in what all of them gain (imitation, see `ImitationLearner`). A search from such a policy trusts it
    more (`PRETRAINED_BOUND`), and fine-tunes it by PPO. On eight fusion tasks of models that were not used in
    pre-training, 1,000 evaluations gain 3.1 % with it and 2.1 % without (`results/strategies`).

    A run repeats exactly on one kind of processor only: XLA compiles for its instructions, with others the last digits
    differ, and soon the choices (measured with AVX instead of AVX2: from the 177th of 1,000 candidates on).
    """

    Options: ClassVar[type] = ReinforcementOptions
    options: ReinforcementOptions
    uses_structure: ClassVar[bool] = True

    def __init__(
        self, task: Task, budget: int, rng: Generator, options: ReinforcementOptions, training: Training | None = None
    ) -> None:
        super().__init__(task, budget, rng, options)
        configure_jax()
        moves = Moves(task.space)
        self._agent, neighbours = None, None
        if len(moves.movable):
            mutation = AdaptiveMutation(moves, rng)
            self._agent = self._new_agent(mutation, training)
            neighbours = _chosen_by(self._agent, mutation)
        self._annealing = Annealing(task, budget, rng, options, neighbours)

    def _new_agent(self, mutation: AdaptiveMutation, training: Training | None) -> Agent:
        from .agent import Agent
        from .imitation import ImitationAgent
        from .learner import Learner
        from .ppo import Settings

        size = int(np.clip(self.budget // 20, 10, 100))
        if training:
            return ImitationAgent(*training, mutation, size, self.rng)
        options, policy = self.options, policy_of(self.task, self.options, self.rng)
        learner = Learner(policy, Settings(options.clip, options.entropy), options.rate)
        return Agent(self.task, learner, mutation, size, options.epochs, self.rng)

    def ask(self, n: int) -> NDArray:
        """Return the state if its cost is not known yet, and changes of it that the policy chooses."""
        return self._annealing.ask(n)

    def tell(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Let the policy learn, then the state move."""
        cost, changes = self._annealing.split(values)
        if self._agent is not None and len(changes):
            self._agent.learn(changes, cost)
        self._annealing.tell(configs, values)

    def observe(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Advance the schedule; continue from another strategy's candidate if it is better than the state."""
        self._annealing.observe(configs, values)

    def diagnostics(self) -> dict[str, float]:
        """Return the mean reward of the last rollout, and the standard deviation of the last scores."""
        if self._agent is None:
            return {}
        return {"policy/mean reward": self._agent.mean, "policy/spread": self._agent.spread}

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
        configure_jax()
        from .imitation import ImitationLearner
        from .policy import PRETRAINED_BOUND
        from .serialization import save
        from .training import shared_widths, train

        shared_widths([lesson.task for lesson in lessons])
        learner = ImitationLearner(policy_of(lessons[0].task, options, rng, PRETRAINED_BOUND), rng)

        def start(lesson: Lesson, budget: int) -> ReinforcementLearning:
            return cls(lesson.task, budget, rng, options, (learner, lesson))

        train(lessons, start, learner, budget, progress)
        save(learner.policy, out)


def policy_of(task: Task, options: ReinforcementOptions, rng: Generator, bound: float | None = None) -> Policy:
    """Return a policy for tasks like this one: from a file, or else a random one with a bound of scores."""
    from .inputs import widths_of
    from .learner import random_policy
    from .policy import BOUND
    from .serialization import load

    widths = widths_of(task)
    if options.pretrained:
        path, data = content(options.pretrained)
        return load(data, path, *widths, task.problem)
    return random_policy(*widths, rng, bound or BOUND)


def _chosen_by(agent: Agent, mutation: AdaptiveMutation) -> ChosenNeighbours:
    from .neighbours import ChosenNeighbours

    return ChosenNeighbours(agent, mutation)
