"""The portfolio: shares, credit, and what its members learn."""

from __future__ import annotations

import numpy as np
import pytest

from bbo_strategies import portfolio
from bbo_strategies.portfolio import Portfolio, PortfolioOptions
from bbo_suite import Space, Strategy, Task, UserError
from bbo_suite.registry import Registry

SPACE = Space(np.full(30, 2))


class Stays(Strategy):
    """Proposes the default for ever, and counts what it hears."""

    def __init__(self, *args):
        super().__init__(*args)
        self.told = self.observed = 0

    def ask(self, n):
        return np.tile(self.task.default, (n, 1))

    def tell(self, configs, values):
        self.told += len(values)

    def observe(self, configs, values):
        self.observed += len(values)


class Descends(Stays):
    """Each candidate has one 1 more than the one before."""

    def ask(self, n):
        ones = min(30, self.told + 1)
        return np.tile((np.arange(30) < ones).astype(SPACE.dtype), (min(n, 2), 1))


class Covered(Stays):
    """Has nothing to try."""

    def ask(self, n):
        return np.empty((0, 30), SPACE.dtype)


def made(monkeypatch, *members, budget=400, **options) -> Portfolio:
    monkeypatch.setattr(portfolio, "_classes", lambda names, known: list(members))
    task = Task("made-up", SPACE, np.zeros(30, SPACE.dtype), "seconds")
    return Portfolio(task, budget, np.random.default_rng(0), PortfolioOptions(**options))


def play(player: Portfolio, rounds: int, n: int = 10) -> list[int]:
    """Return who was asked, by place, weighted by nothing: one entry a candidate."""
    asked: list[int] = []
    for _ in range(rounds):
        configs = player.ask(n)
        asked += [player._asked] * len(configs)
        player.tell(configs, 100.0 - configs.sum(axis=1))
    return asked


def test_a_member_is_told_its_own_candidates_and_observes_all_others(monkeypatch):
    player = made(monkeypatch, Stays, Descends)
    asked = play(player, 20)
    for place, member in enumerate(player._members):
        assert member.told == asked.count(place)
        assert member.told + member.observed == len(asked)


def test_without_improvement_members_get_equal_candidates_whatever_their_batches(monkeypatch):
    class Small(Stays):
        def ask(self, n):
            return super().ask(1)

    asked = play(made(monkeypatch, Stays, Small), 300)
    assert abs(asked.count(0) - asked.count(1)) <= 10


def test_the_member_that_improves_gets_all_but_the_floor(monkeypatch):
    player = made(monkeypatch, Stays, Descends, Stays, least=0.1)
    play(player, 12, n=2)
    assert np.allclose(player.shares, [0.1, 0.8, 0.1])


def test_credit_is_the_gain_per_candidate_and_older_gains_count_less(monkeypatch):
    player = made(monkeypatch, Stays, Stays, budget=100, least=0.0)  # a half-life is 10 candidates
    player._best = 10.0
    for player._asked, best in [(0, 8.0), (0, 8.0), (1, 7.0)]:
        player._settle(10, best)
    rates = np.array([2 / 4 / (10 / 4 + 10 / 2), 1 / 10])
    assert np.allclose(player.shares, rates / rates.sum())


def test_the_budget_goes_to_other_members_when_one_has_nothing_left(monkeypatch):
    assert set(play(made(monkeypatch, Covered, Stays), 5)) == {1}
    assert len(made(monkeypatch, Covered, Covered).ask(5)) == 0


@pytest.mark.parametrize("members", ["", "portfolio", "random,random", "nosuch"])
def test_wrong_members_are_refused(members):
    with pytest.raises(UserError):
        portfolio._classes(Portfolio.members(PortfolioOptions(members)), Registry())


@pytest.mark.parametrize("name", ["annealing", "evolution", "mbo"])
def test_members_continue_from_candidates_of_others(name):
    task = Task("made-up", SPACE, np.zeros(30, SPACE.dtype), "seconds")
    member = Registry().strategy(name)
    player = member(task, 1000, np.random.default_rng(0), member.Options())
    for _ in range(3):
        configs = player.ask(10)
        player.tell(configs, 100.0 - configs.sum(axis=1))
    found = np.ones((1, 30), SPACE.dtype)
    player.observe(found, np.array([70.0]))
    assert ((player.ask(10) == found).mean(axis=1) > 0.6).any()
