"""The one-shot tuner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Kind, Level, Space, Strategy, Task, UserError, option
from bbo_suite.core.versions import PinnedFile, content

if TYPE_CHECKING:  # JAX takes a second to import: only a run pays for it
    from bbo_suite.pretraining import Lesson, Progress

    from .groups import Group, Score
    from .predictor import Model

SHIPPED = Path(__file__).parent / "models"
"""The models that ship, each for the tasks whose features it was trained on."""


@dataclass(frozen=True)
class OneShotOptions:
    """Options of `one-shot`; all but the first two are of `pretrain` alone."""

    pretrained: PinnedFile = option(PinnedFile(), "file of a model, made by `pretrain`; empty: the one that ships")  # noqa: RUF009
    queries: int = option(16_384, "predictions for each group of parameters", low=2048, high=10_000_000)
    network: Literal["plain", "attention"] = option("plain", "plain network, or self-attention over the values")
    steps: int = option(4000, "steps of training", low=1, high=1_000_000)
    explore: bool = option(True, "train on candidates of a search (exploration-based sampling); else on random ones")
    rank: bool = option(True, "train by pairs of candidates; else by squared error")


class OneShot(Strategy):
    """Searches on a predictor that was trained on other tasks, and measures its picks (Ryu et al. 2022).

    The method is that of "One-Shot Tuner for Deep Learning Compilers". Candidates are proposed in the order
    of their predicted costs. No measurement changes the predictor, so a budget of k measures the top k. Parameters that
    interact are one group, such as the settings of one kernel. Each group is searched by itself, and candidate i takes
    the i-th best of every group.

    The predictor sees what the task declares: the features of the parameters of a group, and numbers that describe each
    value (`groups._numbers`). It cannot know what is not declared: the model that ships was trained on the
    simulated machine v5e, and answers for every machine as for that one. For kernels of a kind that they never saw they
    extrapolate, and do not say so. A task with other features, or with more parameters in a group, is refused.

    `pretrain` trains on tasks with one group each, as families of tasks give them: `--family kernel/prior`; or on
    recorded spaces of one kernel on several devices: `--problem recorded:a.json --problem recorded:b.json`. These
    declare no features, so the predictor knows names and values of parameters, and nothing of the device.
    """

    Options: ClassVar[type] = OneShotOptions
    options: OneShotOptions
    level: ClassVar[Level] = Level.STRUCTURE

    def __init__(self, task: Task, budget: int, rng: Generator, options: OneShotOptions) -> None:
        super().__init__(task, budget, rng, options)
        self._ranked = self._search(_model(task, options))
        self._next = 0

    def ask(self, n: int) -> NDArray:
        """Return the next candidates in the order of their predicted costs; no rows when all are proposed."""
        batch = self._ranked[self._next : self._next + n]
        self._next += len(batch)
        return batch

    def _search(self, model: Model) -> NDArray:
        """Return `(k, d)` candidates, the best first."""
        task, found = self.task, _groups(self.task, model)
        self._count = len(found)
        orders: dict[bytes, NDArray] = {}
        for group in found:
            if (key := group.content()) not in orders:
                orders[key] = self._order(group, model)
        depth = min(self.budget, max(len(order) for order in orders.values()))
        rows = np.repeat(task.default[None].astype(task.space.dtype), depth, axis=0)
        for group in found:
            order = orders[group.content()]
            rows[:, group.columns] = order[np.minimum(np.arange(depth), len(order) - 1)]
        return rows[task.space.allowed(rows)]

    def _order(self, group: Group, model: Model) -> NDArray:
        """Return the settings of a group in the order of their predicted costs."""
        from .groups import ranked

        space = _subspace(self.task.space, group.columns)
        start = self.task.default[group.columns].astype(space.dtype)
        return ranked(space, start, self._score(group, model), self.options.queries, self.rng)

    def _score(self, group: Group, model: Model) -> Score:
        from .predictor import predict

        default = self.task.default[group.columns]

        def score(settings: NDArray) -> NDArray[np.float32]:
            rows = np.repeat(self.task.default[None], len(settings), axis=0)
            rows[:, group.columns] = settings
            costs = predict(model.predictor, group, settings, self._count)
            if self._count > 1:  # the default works: what may fail has to be much better to spoil the other groups
                known = (settings == default).all(axis=1)
                costs = np.where(known, predict(model.predictor, group, settings, 0), costs)
            return np.where(self.task.space.allowed(rows), costs, np.float32(np.inf))

        return score

    @classmethod
    def pretrain(
        cls,
        lessons: Sequence[Lesson],
        budget: int,
        rng: Generator,
        options: OneShotOptions,
        out: Path,
        progress: Progress,
    ) -> None:
        """Train a predictor on tasks of one family and write it to `out`."""
        from .predictor import collect, common_names, extended, save, train

        names, each = common_names(lessons), max(16, budget // len(lessons))
        learn = partial(train, architecture=options.network, rank=options.rank, rng=rng)
        first = each - each // 4 if options.explore else each
        samples = collect(lessons, first, options.explore, rng, progress)
        if options.explore:
            early = learn(samples, steps=-(-options.steps // 2), tell=partial(progress, first * len(lessons)))
            samples = extended(samples, early, each // 4, rng, progress)
        predictor = learn(samples, steps=options.steps, tell=partial(progress, each * len(lessons)))
        save(predictor, options.network, names, out)


def _subspace(space: Space, columns: NDArray[np.int64]) -> Space:
    """Return the space of a group; with its constraints if it is the whole space, else `allowed` holds them."""
    if len(columns) == len(space):
        return space
    kinds = space.kinds[columns]
    return Space(space.sizes[columns], np.where(kinds == Kind.SLOT, Kind.CHOICE, kinds))


def _model(task: Task, options: OneShotOptions) -> Model:
    """Return the model that the options name, or the one that ships for tasks with these features."""
    from .groups import feature_names
    from .predictor import load

    if options.pretrained:
        path, data = content(options.pretrained)
        return load(data, path)
    for file in sorted(SHIPPED.glob("*.npz")):
        model = load(file.read_bytes(), file.name)
        if model.names == feature_names(task):
            return model
    raise UserError(
        f"no model of one-shot that ships knows the features of {task.problem}; train one on problems of its family by"
        " `python -m bbo_suite pretrain --strategy one-shot --problem ID --out FILE`, and use it with"
        " `--option pretrained=FILE`"
    )


def _groups(task: Task, model: Model) -> list[Group]:
    """Return the groups of a task that a model can describe."""
    from .groups import feature_names, groups

    if feature_names(task) != model.names:
        raise UserError(
            f"the model of one-shot does not fit {task.problem}: it was trained on {len(model.names)} other features;"
            " pretrain one on tasks of that family"
        )
    found = groups(task)
    if (widest := max(len(group.columns) for group in found)) > model.places:
        raise UserError(
            f"{widest} parameters of {task.problem} interact, but the model of one-shot takes at most {model.places};"
            " pretrain one on tasks of that family"
        )
    return found
