"""The page of a study of fleets."""

import json

import pandas as pd
import pytest

from bbo_suite.errors import UserError
from bbo_suite.figures import fleet as figures
from bbo_suite.report import fleet


def run(folder, policy, budget, saved, kernels):
    (folder / f"{policy}-{budget}").mkdir(parents=True)
    end = {"policy": policy, "budget": budget, "seed": 0, "saved": saved, "kernels_a_day": kernels, "lost": 0.0}
    end |= {"savings_over_cost": 30.0, "days_to_recover": None}
    (folder / f"{policy}-{budget}" / fleet.END).write_text(json.dumps(end))
    days = [{"day": day, "version": int(day > 2), "saved": saved, "potential": 0.2} for day in (1, 2, 3)]
    pd.DataFrame(days).to_csv(folder / f"{policy}-{budget}" / fleet.DAYS, index=False)


@pytest.fixture
def folder(tmp_path):
    for budget in (100, 1000):
        run(tmp_path / "<s>", "oracle", budget, 0.1, 5)
        run(tmp_path / "<s>", "saving", budget, 0.05, 2)
        run(tmp_path / "<s>", "model", budget, 0.04 + budget / 20_000, 60)
    return tmp_path / "<s>"


def test_sentences_name_the_highest_policy_its_regret_and_what_the_model_is_worth(folder):
    said = list(fleet.sentences(fleet.read(folder)[0]))
    assert said[0] == (
        "With 100 chip-seconds a day, 1 fleet is too little for a test of which of 2 policies is best: --repeats 6."
    )
    assert said[1].startswith("Highest mean: saving with 5.00% of the fleet's chip time, 50.0% less than an oracle")
    assert said[4].startswith("Highest mean: model with 9.00% of the fleet's chip time, 10.0% less than an oracle")
    assert "tunes 30.0 times as many kernels" in said[2]


@pytest.mark.parametrize(
    ("fleets", "shift", "said"),
    [
        (6, 0.01, "high is the best of 2 policies over 6 fleets (all p ≤ 0.05)."),
        (6, 0.0, "cannot be told apart by a test over 6 fleets."),
        (5, 0.01, "5 fleets are too few for a test of which of 2 policies is best: --repeats 6."),
    ],
)
def test_a_policy_is_the_best_only_by_a_test(fleets, shift, said):
    low = [(0.05 + seed / 100) for seed in range(fleets)]
    high = [saved + (seed % 2 - 0.4) / 1000 + shift for seed, saved in enumerate(low)]
    rows = [
        (name, 100.0, seed, saved) for name, own in (("high", high), ("low", low)) for seed, saved in enumerate(own)
    ]
    runs = pd.DataFrame(rows, columns=["policy", "budget", "seed", "saved"])
    runs = runs.assign(regret=None, savings_over_cost=1.0, kernels_a_day=1.0)
    assert next(fleet.sentences(runs)).endswith(said)


def test_a_page_has_figures_and_escapes_names(folder):
    page = fleet.write(folder).read_text()
    assert page.count("<svg") == 2 and "<title>&lt;s&gt;" in page and "of the fleet" in page
    assert 'id="days.' in page and 'id="budgets.' in page


def test_figures_show_every_policy_and_the_release(folder):
    runs, days = fleet.read(folder)
    figure = figures.days(days)
    lines = figure.axes[0].get_lines()
    assert {line.get_label() for line in lines} >= {"oracle", "saving", "model"}
    assert [
        line.get_xdata()[0] for line in lines if line.get_linestyle() == ":" and len(set(line.get_xdata())) == 1
    ] == [3]
    drawn = next(line for line in figures.budgets(runs).axes[0].get_lines() if line.get_label() == "model")
    assert list(drawn.get_ydata()) == [4.5, 9.0]


def test_without_a_finished_run_there_is_one_sentence(tmp_path):
    with pytest.raises(UserError, match="there is no finished run"):
        fleet.write(tmp_path)
