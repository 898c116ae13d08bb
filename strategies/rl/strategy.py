"""Reinforcement learning as GO: one policy over all decisions of a computation graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Strategy, Task, option

from .policy_file import PolicyFile, content

if TYPE_CHECKING:  # JAX takes a second to import: only a run pays for it
    from bbo_suite.pretraining import Lesson, Progress

    from .learner import Learner
    from .policy import Graph


@dataclass(frozen=True)
class ReinforcementOptions:
    """Options of `rl`."""

    tail: float = option(1.3, "exponent of the power law of changes a candidate; larger: fewer", low=0.1, high=100)
    round: int = option(64, "candidates that the policy learns from at a time, most", low=1, high=100_000)
    rate: float = option(0.001, "learning rate; 0: the policy stays as it is", low=0, high=1)
    epochs: int = option(4, "steps on each round", low=1, high=100)
    clip: float = option(0.2, "clipping range of the probability ratio", low=0.001, high=10)
    entropy: float = option(0.01, "weight of the entropy bonus", low=0, high=10)
    pretrained: PolicyFile = option(PolicyFile(), "file of a policy to start from, made by `pretrain`")  # noqa: RUF009


class ReinforcementLearning(Strategy):
    """A graph network decides every parameter at once and learns by PPO which changes of the incumbent pay.

    After GO (Zhou et al. 2020, "Transferable Graph Optimizers for ML Compilers"): GraphSAGE embeds the computation
    graph, segmented recurrent attention carries context over all parameters, one decision for each is made in parallel
    and refined in a second pass, and proximal policy optimization trains it. Without a declared graph the parameters
    are the nodes, joined where they interact. `pretrain` trains a policy on several problems of one family; option
    `pretrained` starts from it. Hyperparameters are ours: the authors published none.

    Where this differs from the publication:
      - The compiler's default is strong, and so the policy decides how the incumbent is changed, not the whole
        candidate: how many parameters change follows a power law, which ones and to what the policy says. What gained
        is kept, and what several candidates gained is merged.
      - Each change has an advantage of its own: the reward without what the critic expects of the other changes.
      - The policy sees how often each change was tried and what it was worth, a memory that transfers.
      - Attention runs over the parameters, in the order of the space, and not over the nodes.
    """

    Options: ClassVar[type] = ReinforcementOptions
    options: ReinforcementOptions
    uses_structure: ClassVar[bool] = True

    def __init__(self, task: Task, budget: int, rng: Generator, options: ReinforcementOptions) -> None:
        super().__init__(task, budget, rng, options)
        _quietly_on_cpu()
        from .changes import Changes
        from .inputs import graph_of
        from .search import Search

        changes = Changes(task.space)
        self._search: Search | None = None
        if len(changes):
            graph = graph_of(task, changes)
            learner = _learner(graph, options, rng, task.problem)
            size = int(np.clip(budget // 16, 8, options.round))
            self._search = Search(task, changes, graph, learner, size, options.tail, rng)

    def ask(self, n: int) -> NDArray:
        """Return candidates of the current round, the default first; the default alone if nothing can change."""
        if self._search is None:
            return np.repeat(self.task.default[None], n, axis=0)
        return self._search.ask(n)

    def tell(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Take the costs; the policy learns when a round is complete."""
        if self._search is not None:
            self._search.tell(configs, values)

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
        from .pretrained import save
        from .training import Pupil, shared_widths, train

        pupils = [Pupil(lesson) for lesson in lessons]
        shared_widths(pupils)
        learner = _learner(pupils[0].graph, options, rng, pupils[0].lesson.task.problem)
        train(pupils, learner, budget, options, rng, progress)
        save(learner.policy, out)


def _learner(graph: Graph, options: ReinforcementOptions, rng: Generator, task: str) -> Learner:
    from .learner import Learner, fresh
    from .ppo import Settings
    from .pretrained import load

    widths = graph.nodes.shape[1], graph.features.shape[1]
    if options.pretrained:
        path, data = content(options.pretrained)
        policy = load(data, path, *widths, task)
    else:
        policy = fresh(*widths, rng)
    settings = Settings(options.clip, options.entropy)
    return Learner(policy, settings, options.rate, options.epochs)


def _quietly_on_cpu() -> None:
    """Let JAX look for no accelerator: it would reserve one, and runs would not repeat exactly on it."""
    import jax

    if not jax.config.jax_platforms:  # type: ignore[attr-defined]
        jax.config.update("jax_platforms", "cpu")
