"""What the parts of the network are worth: `python results/learned_models/ablation.py DATA` writes ablation.csv.

DATA is made by `python -m bbo_problems.learned data`. Each variant learns 8,000 kernels in 10 epochs, and is judged on
the programs of `VALIDATION`, which it does not learn.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array

from bbo_problems.learned.dataset import VALIDATION, Kernels, Settings, load
from bbo_problems.learned.model import WIDTH, Network
from bbo_problems.learned.training import GRAPH, RELATIVE, Recipe, errors, new_network, pairwise, scored, train
from bbo_suite.nets import dense

HERE = Path(__file__).parent
KERNELS, EPOCHS, SEEDS = 8_000, 10, 3
Estimated = TypeVar("Estimated", Kernels, Settings)


class GraphAttention(eqx.Module):
    """A layer of a graph attention network (Velickovic et al. 2018): a head for producers, and one for consumers."""

    values: list[eqx.nn.Linear]
    scores: list[eqx.nn.Linear]
    update: eqx.nn.Linear
    norm: eqx.nn.LayerNorm

    def __init__(self, width: int, key: Array) -> None:
        keys = jax.random.split(key, 5)
        self.values = [eqx.nn.Linear(width, width, use_bias=False, key=k) for k in keys[:2]]
        self.scores = [eqx.nn.Linear(width, 2, use_bias=False, key=k) for k in keys[2:4]]
        self.update, self.norm = eqx.nn.Linear(3 * width, width, key=keys[4]), eqx.nn.LayerNorm(width)

    def __call__(self, h: Array, below: Array, above: Array) -> Array:
        """Return new embeddings, as `MeanSage` does; an edge is where a matrix is not 0."""
        heads = zip(self.values, self.scores, (below > 0, above > 0), strict=True)
        joined = jnp.concatenate([h, *(attended(h, *head) for head in heads)], axis=2)
        return jax.vmap(jax.vmap(self.norm))(h + jax.nn.relu(dense(self.update, joined)))


def attended(h: Array, values: eqx.nn.Linear, scores: eqx.nn.Linear, edges: Array) -> Array:
    """Return the `(b, n, width)` means over neighbours, weighted by their scores."""
    shown = dense(values, h)
    own, other = jnp.moveaxis(dense(scores, shown), 2, 0)
    score = jax.nn.leaky_relu(own[:, :, None] + other[:, None, :], 0.2)
    weights = jax.nn.softmax(jnp.where(edges, score, -1e9), axis=2)
    return jnp.where(edges, weights, 0.0) @ shown


def attention(data: Kernels, recipe: Recipe, key: Array) -> Network:
    """Return a network with graph attention."""
    first, *keys = jax.random.split(key, 4)
    return _with_layers(new_network(data, recipe, first), [GraphAttention(WIDTH, k) for k in keys])


def sequence(data: Kernels, recipe: Recipe, key: Array) -> Network:
    """Return a network that does not see edges: its reduction gets the operations themselves."""
    return _with_layers(new_network(data, recipe, key), [])


def _with_layers(network: Network, layers: list[GraphAttention]) -> Network:
    return eqx.tree_at(lambda made: made.encoder.layers, network, layers)


def without_estimates(data: Kernels) -> Kernels:
    """Return the kernels with one estimate for all: the network is told nothing of the analytical model."""
    return replace(_same(data), tiles=_same(data.tiles), flags=_same(data.flags))


def _same(settings: Estimated) -> Estimated:
    return replace(settings, estimates=np.full_like(settings.estimates, 1e-6))


class Variant(NamedTuple):
    """How a network differs from the one that ships."""

    recipes: tuple[Recipe, ...] = (GRAPH, RELATIVE)
    start: Callable[[Kernels, Recipe, Array], Network] = new_network
    estimates: bool = True


LSTM, TRANSFORMER = (
    tuple(replace(recipe, reduction=name) for recipe in (GRAPH, RELATIVE)) for name in ("lstm", "transformer")
)
HINGE = (replace(RELATIVE, loss=pairwise(lambda margins: jax.nn.relu(1.0 - margins))),)
VARIANTS = {
    "GraphSAGE, mean": Variant(),
    "graph attention": Variant(start=attention),
    "LSTM over the operations": Variant(LSTM, sequence),
    "Transformer over the operations": Variant(TRANSFORMER, sequence),
    "hinge loss": Variant(HINGE),
    "without estimates": Variant(estimates=False),
    "LSTM over the operations, without estimates": Variant(LSTM, sequence, estimates=False),
    "hinge loss, without estimates": Variant(HINGE, estimates=False),
}


def rows(path: Path) -> Iterator[dict[str, object]]:
    """Yield the mean error of each variant and seed over the programs of `VALIDATION`, in percent."""
    every = load(path)
    judged = np.isin(np.array(every.programs)[every.program], VALIDATION)
    test = every.take(np.flatnonzero(judged))
    training = every.take(np.flatnonzero(~judged)).without(test)
    training = training.take(np.sort(np.random.default_rng(0).permutation(len(training))[:KERNELS]))
    for seed, (name, (recipes, start, estimates)) in product(range(SEEDS), VARIANTS.items()):
        data = [each if estimates else without_estimates(each) for each in (training, test)]
        for recipe in recipes:
            for kind, error in trained(replace(recipe, epochs=EPOCHS), *data, start, seed):
                yield {"variant": name, "kind": kind, "seed": seed, "error": round(error, 3)}


def trained(
    recipe: Recipe,
    training: Kernels,
    test: Kernels,
    start: Callable[[Kernels, Recipe, Array], Network],
    seed: int,
) -> Iterator[tuple[str, float]]:
    """Yield the mean error of a network for each kind that it predicts."""
    network = train(training, recipe, np.random.default_rng(seed), lambda *_: None, start)
    for kind in recipe.kinds:
        found = errors(scored(network, kind, test), kind, test)
        yield kind, float(np.mean([*found.values()]))
    jax.clear_caches()  # compiled code of many shapes would use up the memory maps that a process may have


if __name__ == "__main__":
    made = []
    for row in rows(Path(sys.argv[1])):
        made.append(row)
        pd.DataFrame(made).to_csv(HERE / "ablation.csv", index=False)
        print(*row.values(), flush=True)
