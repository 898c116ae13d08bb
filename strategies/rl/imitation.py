"""Pre-training by imitation: a policy learns to prefer the values of the best candidates of other problems.

A demonstration is what a long local search found on a training problem, and what each other value costs there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Evaluations
from bbo_suite.loop import drive
from bbo_suite.nets import jit, padded
from bbo_suite.pretraining import Lesson

from ..local import LocalOptions, LocalSearch
from .policy import GraphInputs, Names, Numbers, Policy, graph_inputs, observed
from .ppo import optimizer
from .proposals import ParameterValues

_BATCH = 100
_MOST, _LEAST = 0.03, 0.003  # bounds of weights: few values must not decide, and no value is worth nothing
_TURNS, _STEPS = 40, 400  # least number of steps on each demonstration, and on all
_RATE = 0.002  # the first learning rate; it falls to 0 as half a cosine


class Demonstration(NamedTuple):
    """A task in its default state, and what a policy should prefer there.

    Attributes:
      graph: the task.
      state: `(c, STATE)` numbers of each value.
      best: `(c,)` the place of the value that the best candidate gives to the same parameter.
      weights: `(c,)` how much that one is to be preferred to each value; 0 where it is not known, and for padding.
    """

    graph: GraphInputs
    state: Numbers
    best: Numbers
    weights: Numbers


def demonstrate(lesson: Lesson, names: Names, budget: int, rng: Generator) -> Demonstration | None:
    """Search, measure single changes of the best candidate, and return both; None if nothing better was found.

    Half of the budget is for the search. A change that costs as much as the whole search gained would weigh 1; weights
    are cut at 0.03.
    """
    best, cost = _searched(lesson, budget // 2, rng)
    if not cost < lesson.default:
        return None
    task, values = lesson.task, ParameterValues(lesson.task.space)
    places = _measured_places(values, best, task.default, budget // 2, rng)
    losses = (_costs(lesson, best, values, places) - cost) / (lesson.default - cost)
    weights = np.zeros(len(values), np.float32)
    weights[places] = np.clip(losses, 0, _MOST) + _LEAST
    graph = graph_inputs(task, values, names)
    c = len(graph.value)
    wanted = values.places(values.parameter, best[values.parameter]).astype(np.int32)
    return Demonstration(graph, observed(task, values, c), padded(wanted, c), padded(weights, c))


def _searched(lesson: Lesson, budget: int, rng: Generator) -> tuple[NDArray, float]:
    """Return the best candidate of a local search, and its cost."""
    search, best, cost = LocalSearch(lesson.task, budget, rng, LocalOptions()), lesson.task.default, np.inf
    for batch in drive(search, lambda configs, _: Evaluations.of(lesson.evaluate(configs)), _BATCH):
        if batch.values.min() < cost:
            best, cost = batch.configs[batch.values.argmin()], float(batch.values.min())
    return best, cost


def _measured_places(
    values: ParameterValues, best: NDArray, default: NDArray, most: int, rng: Generator
) -> NDArray[np.int64]:
    """Return the places of values other than the best candidate's: first the default's, then random ones."""
    own = values.places(values.parameter, best[values.parameter])
    usual = values.places(values.parameter, default[values.parameter])
    all_places = np.arange(len(values))
    others = rng.permutation(all_places[all_places != own])
    is_usual = usual[others] == others
    return np.concatenate([others[is_usual & (usual != own)[others]], others[~is_usual]])[:most]


def _costs(lesson: Lesson, best: NDArray, values: ParameterValues, places: NDArray) -> NDArray[np.float64]:
    """Return what the best candidate costs with each value of `(k,)` places in place of its own."""
    found = [np.empty(0)]
    for at in range(0, len(places), _BATCH):
        some = places[at : at + _BATCH]
        rows = np.repeat(best[None], len(some), axis=0)
        rows[np.arange(len(some)), values.parameter[some]] = values.index(some)
        found.append(lesson.evaluate(rows))
    return np.concatenate(found)


def imitate(
    policy: Policy, shown: Sequence[Demonstration], rng: Generator, progress: Callable[[float], None]
) -> Policy:
    """Return the policy after training on demonstrations in random order.

    Args:
      progress: called with the loss of each turn of all demonstrations.
    """
    state, turns = optimizer().init(policy), max(_TURNS, -(-_STEPS // len(shown)))
    for turn in range(turns):
        rate, losses = np.float32(_RATE * np.cos(turn / turns * np.pi / 2) ** 2), []
        for i in rng.permutation(len(shown)):
            policy, state, loss = _step(policy, state, shown[i], rate)
            losses.append(float(loss))
        progress(float(np.mean(losses)))
    return policy


def regret(preferences: Array, shown: Demonstration) -> Array:
    """Return the weighted mean of `log(1 + exp(preference - preference of the best value))`.

    This is the convex bound of what a wrong choice costs, as in learning to search (Ross and Bagnell 2014, AggreVaTe).
    """
    losses = jax.nn.softplus(preferences - preferences[shown.best])
    return (losses * shown.weights).sum() / jnp.maximum(jnp.asarray(shown.weights).sum(), 1e-9)


@jit
def _step(
    policy: Policy, optimizer_state: optax.OptState, shown: Demonstration, rate: Array
) -> tuple[Policy, optax.OptState, Array]:
    def loss(policy: Policy) -> Array:
        return regret(policy(shown.graph, jnp.asarray(shown.state)), shown)

    value, gradient = eqx.filter_value_and_grad(loss)(policy)
    updates, optimizer_state = optimizer().update(gradient, optimizer_state)
    return eqx.apply_updates(policy, jax.tree.map(lambda u: -rate * u, updates)), optimizer_state, value
