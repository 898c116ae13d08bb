"""Policies for the order of passes, on an environment whose best sequence is known."""

import numpy as np
import pytest

from bbo_strategies.pass_policy.beam import beam, greedy
from bbo_strategies.pass_policy.demonstrations import demonstrated, exchanged, pruned
from bbo_strategies.pass_policy.dqn import Replay, q_learning
from bbo_strategies.pass_policy.episodes import play
from bbo_strategies.pass_policy.graph_policy import WithGraph, imitate_graphs
from bbo_strategies.pass_policy.policy import imitate

STOP, A, B, C, CRASH = range(5)


class Toy:
    """A program of kind `x` needs A then B, one of kind `y` B then A; each saves a fourth. C does nothing."""

    class action_space:
        n = 5

    costed = 0

    def reset(self, options):
        self.order = {"x": (A, B), "y": (B, A)}[options["problem"][0]]
        self.done, self.steps = 0, 0
        return self._seen(), {"cost": 4.0}

    def _seen(self):
        return np.array([self.order == (A, B), self.order == (B, A), self.done], np.float32)

    def step(self, action):
        self.steps += 1
        if action == CRASH:
            return self._seen(), 0.0, True, False, {"cost": 4.0, "failure": "it died"}
        if self.done < 2 and action == self.order[self.done]:
            self.done += 1
        ended = action == STOP or self.steps == 6
        return self._seen(), 0.0, ended, False, {"cost": 4.0 - self.done}


@pytest.fixture(scope="module")
def policy():
    seen, right = demonstrated(Toy(), {"x1": (A, B), "y1": (B, A)}, 6, np.random.default_rng(0))
    return imitate(seen, right, 5, 400, seed=0)


def test_passes_that_do_nothing_are_left_out():
    assert pruned(Toy(), "x1", (C, B, A, A, C, B)) == (A, B)
    assert pruned(Toy(), "x1", (C, CRASH)) == ()


def test_programs_take_the_best_of_all_sequences_and_share_it_where_they_can():
    """A B A B serves both kinds, and is one sequence of the pool twice."""
    shared = exchanged(Toy(), ["x1", "x2", "y1"], {"x1": (A, B), "x2": (C,), "y1": (C, B, A)}, 6)
    assert shared == dict.fromkeys(["x1", "x2", "y1"], (A, B, A, B))
    assert exchanged(Toy(), ["x1"], {"x1": (A, B), "y1": (C, B, A)}, 6) == {"x1": (A, B)}


def test_detours_that_spoil_a_sequence_teach_nothing():
    seen, right = demonstrated(Toy(), {"x1": (A, B)}, 30, np.random.default_rng(0))
    assert set(right.tolist()) == {A, B, STOP} and len(seen) == len(right) > 3
    assert len(right) < 31 * 3, "detours through CRASH are left out"


def test_a_policy_imitates_and_tells_programs_apart(policy):
    assert greedy(Toy(), "x9", policy) == ((A, B), 2.0, 2)
    assert greedy(Toy(), "y9", policy) == ((B, A), 2.0, 2)


def test_a_beam_counts_every_cost_and_keeps_the_best(policy):
    found = beam(Toy(), "x9", policy, 2, 20)
    assert found.cost == 2.0 and found.actions[:2] == (A, B) and 2 <= found.compilations <= 20
    assert beam(Toy(), "x9", policy, 2, 1).compilations == 1


def test_a_beam_without_a_good_policy_still_ends():
    found = beam(Toy(), "x9", lambda _: np.log(np.full(5, 0.2)), 3, 50)
    assert found.compilations <= 18 and found.cost <= 4.0


def test_a_failed_action_costs_infinity_and_nothing_follows_the_end():
    assert play(Toy(), "x1", (A, CRASH)).cost == np.inf
    with pytest.raises(ValueError, match="the episode ends before action 1"):
        play(Toy(), "x1", (STOP, A))


class Rewarding(Toy):
    """The toy with rewards, and programs drawn at random."""

    rng = np.random.default_rng(0)

    class observation_space:
        shape = (4,)

    def reset(self, seed=None, options=None):
        self.rng = self.rng if seed is None else np.random.default_rng(seed)
        self.cost = 4.0
        return super().reset(options or {"problem": "xy"[self.rng.integers(2)]})

    def _seen(self):
        return np.append(super()._seen(), self.steps / 6).astype(np.float32)

    def step(self, action):
        seen, _, ended, cut, info = super().step(action)
        saved, self.cost = self.cost - info["cost"], info["cost"]
        return seen, saved, ended, cut, info


@pytest.mark.slow
def test_q_learning_finds_what_each_kind_of_program_needs():
    policy = q_learning(Rewarding(), 2500, seed=0)
    assert greedy(Rewarding(), "x9", policy).cost == greedy(Rewarding(), "y9", policy).cost == 2.0


def test_steps_with_large_errors_are_replayed_more_often_and_count_less():
    replay, rng = Replay(10, 1), np.random.default_rng(0)
    for number in range(4):
        replay.add(np.ones(1), number, float(number), np.ones(1), number == 3)
    replay.found(np.arange(4), np.array([0.0, 0.1, 0.1, 2.0]))
    places, weights, drawn = replay.draw(4000, 1.0, rng)
    shares = np.bincount(places, minlength=4) / 4000
    assert shares[0] < shares[1] < shares[3] and np.array_equal(drawn.reward, places)
    assert weights[places == 3].max() < weights[places == 1].min() < 1


class Drawn(Toy):
    """The toy without its counts: only the graph tells programs apart, a chain for kind `x` and a star for `y`."""

    def _seen(self):
        return np.array([self.done], np.float32)

    def _with_graph(self, info):
        size = 5 + self.done
        edges = [(i, i + 1) if self.order == (A, B) else (0, i + 1) for i in range(size - 1)]
        return info | {"graph": (np.zeros(size, np.uint8), np.array(edges, np.int32))}

    def reset(self, options):
        seen, info = super().reset(options)
        return seen, self._with_graph(info)

    def step(self, action):
        *told, info = super().step(action)
        return *told, self._with_graph(info)


def test_a_policy_that_reads_the_graph_tells_programs_apart_by_it():
    env = WithGraph(Drawn())
    seen, right = demonstrated(env, {"x1": (A, B), "y1": (B, A)}, 4, np.random.default_rng(0))
    policy = imitate_graphs(seen, right, 5, 400, seed=0)
    assert greedy(env, "x9", policy) == ((A, B), 2.0, 2)
    assert greedy(env, "y9", policy) == ((B, A), 2.0, 2)
