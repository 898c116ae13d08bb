"""Reinforcement learning as GO: one policy over all decisions of a computation graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.random import Generator

from bbo_suite import Level, Moves, Task, UserError, option
from bbo_suite.core.versions import PinnedFile, content

from ..annealing import Annealing, AnnealingOptions
from ..changes import AdaptiveMutation

if TYPE_CHECKING:  # JAX takes a second to import: only a run pays for it
    from bbo_suite.pretraining import Lesson, Progress

    from .learning import Agent
    from .policy import Names, Policy


_PATIENCE = 0.25  # group tests end after failures in a row for this share of the budget


@dataclass(frozen=True)
class ReinforcementOptions(AnnealingOptions):
    """Options of `rl`."""

    rate: float = option(0.002, "learning rate; 0: the policy does not change", low=0, high=1)
    epochs: int = option(2, "steps on each of the last rollouts", low=1, high=100)
    clip: float = option(0.2, "clipping range of the probability ratio", low=0.001, high=10)
    entropy: float = option(0.01, "weight of the entropy bonus", low=0, high=10)
    pretrained: PinnedFile = option(PinnedFile(), "file of a policy to start from, made by `pretrain`")  # noqa: RUF009


class ReinforcementLearning(Annealing):
    """Annealing whose changes a graph network chooses, which learns by PPO (GO, Zhou et al. 2020).

    As in "Transferable Graph Optimizers for ML Compilers", GraphSAGE embeds the computation graph, segmented recurrent
    attention carries context over all parameters, decisions for all parameters are made in parallel and refined in a
    second pass, and proximal policy optimization trains the network. Without a declared graph the parameters are the
    nodes, and an edge joins two that interact. Option `pretrained` starts from a policy that `pretrain` trained on
    other problems. The hyperparameters are ours: the authors published none.

    Differences from the publication:
      - The compiler's default is strong, and a candidate consists of too many decisions to learn the worth of each from
        the cost of the whole. So the network does not decide the candidate. It gives a preference for every value of
        every parameter in the state of `annealing`, and the policy is the softmax of these over twelve times as many
        proposals (`AdaptiveMutation`) as are evaluated. These are drawn without replacement, but PPO takes the
        probability of each as if it were drawn alone.
      - The baseline is the mean of the rollout, instead of a critic.
      - The network sees how often each value was tried and what it gained, knowledge that transfers between tasks.
      - Attention runs over the parameters, in the order of the space, instead of over the nodes.

    `pretrain` searches training problems by `local`, measures each other value around the best candidate, and the
    policy learns to prefer what is best there, the more the other value would cost (imitation, see `imitate`). One
    policy serves several families. A search from it first tries what the policy prefers to the default, in groups that
    are halved if they do not pay (`GroupTests`); then it goes on as from scratch, but trusts the policy more
    (`PRETRAINED_BOUND`). `results/transfer` has what that is worth on programs of other models.

    A run repeats exactly on one kind of processor only: XLA compiles for its instructions, with others the last digits
    differ, and soon the choices (measured with AVX instead of AVX2: from the 177th of 1,000 candidates on).
    """

    Options: ClassVar[type] = ReinforcementOptions
    options: ReinforcementOptions
    level: ClassVar[Level] = Level.STRUCTURE

    def __init__(self, task: Task, budget: int, rng: Generator, options: ReinforcementOptions) -> None:
        self._agent = _agent(task, budget, rng, options)
        super().__init__(task, budget, rng, options, self._agent)
        if options.pretrained:
            self._opening.left = 0  # the policy knows better where to begin

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
        """Train one policy on several problems, of one or more families, and write it to `out`.

        Raises:
          UserError: a policy to start from is given, or the budget is too small to find anything to learn.
        """
        if options.pretrained:
            raise UserError("rl learns a new policy from all problems at once; pretrain it without pretrained")
        if budget < 2 * len(lessons):
            raise UserError(f"rl needs 2 evaluations or more of each problem; raise --budget to {2 * len(lessons)}")
        from .learning import demonstrate, imitate
        from .policy import PRETRAINED_BOUND, Names, random_policy, save

        names, each = Names.of(lesson.task for lesson in lessons), budget // len(lessons)
        shown = []
        for number, lesson in enumerate(lessons):
            if (found := demonstrate(lesson, names, each, rng)) is not None:
                shown.append(found)
            progress(each * (number + 1), f"{len(shown)} problems have something to learn")
        if not shown:
            raise UserError("local search finds nothing better than the default on these problems; raise --budget")
        policy = random_policy(*names.widths, rng, PRETRAINED_BOUND)
        save(imitate(policy, shown, rng, lambda loss: progress(budget, f"loss {loss:.4f}")), names, out)


def policy_of(task: Task, options: ReinforcementOptions, rng: Generator) -> tuple[Policy, Names]:
    """Return a policy for a task and the names of its features: from a file, or else a random one."""
    from .policy import Names, load, random_policy

    if options.pretrained:
        path, data = content(options.pretrained)
        return load(data, path, task)
    names = Names.of([task])
    return random_policy(*names.widths, rng), names


def _agent(task: Task, budget: int, rng: Generator, options: ReinforcementOptions) -> Agent | None:
    """Return what chooses the changes; None if nothing can change."""
    moves = Moves(task.space)
    if not len(moves.movable):
        return None
    from .learning import Agent, Learner, Settings

    policy, names = policy_of(task, options, rng)
    learner = Learner(policy, Settings(options.clip, options.entropy), options.rate)
    size, patience = int(np.clip(budget // 20, 10, 100)), int(_PATIENCE * budget) if options.pretrained else 0
    return Agent(task, names, learner, AdaptiveMutation(moves, rng), size, options.epochs, patience, rng)
