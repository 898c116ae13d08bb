"""Policies for the order of passes, on an environment whose best sequence is known."""

import numpy as np
import pytest

from bbo_problems.pass_order.policies import beam, demonstrated, exchanged, greedy, imitate, play

pytestmark = pytest.mark.slow  # compiles networks

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


def test_a_failed_action_costs_infinity_and_nothing_follows_the_end():
    assert play(Toy(), "x1", (A, CRASH)).cost == np.inf
    with pytest.raises(ValueError, match="ends before"):
        play(Toy(), "x1", (STOP, A))
