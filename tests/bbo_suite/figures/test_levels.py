"""Levels of knowledge in figures: a line style each, and those that see costs of parts are ranked apart."""

import pytest
from bbo_toys import frame

from bbo_suite.core.level import Level
from bbo_suite.figures.captions import ranked_together
from bbo_suite.figures.convergence import draw as draw_convergence
from bbo_suite.figures.critical import critical_data
from bbo_suite.figures.critical import draw as draw_critical
from bbo_suite.figures.heat import heat_data
from bbo_suite.figures.highlight import highlighted
from bbo_suite.figures.profile import draw as draw_profile
from bbo_suite.figures.style import LINES, looks_by_knowledge

COSTS = {"annealing": 6.0, "random": 7.0, "mbo": 5.0, "local": 4.0, "graybox": 2.0}


@pytest.fixture(scope="module")
def three():
    runs = {(f"p/{i}", name, 0): [8.0, 8.0, cost + i / 9] for i in range(4) for name, cost in COSTS.items()}
    return frame(runs, budget=3, structured=("local",), hearing=("graybox",))


def test_each_level_has_a_line_style_and_each_strategy_a_colour_and_a_marker():
    names = [f"s{number}" for number in range(12)]
    levels = dict(zip(names, [*Level] * 3, strict=True))
    made = looks_by_knowledge(levels)
    assert {(level, made[name].dash) for name, level in levels.items()} == {(k, line) for k, (line, _) in LINES.items()}
    assert len({look.marker for look in made.values()}) == len({look.colour for look in made.values()}) == 12


def test_curves_show_the_levels_and_the_caption_explains_them(three):
    figure, data = draw_convergence(three, problems=["p/0"])
    shown = {line.get_color(): line.get_linestyle() for line in figure.axes[0].lines[1:]}
    look = highlighted(three).looks
    assert [shown[look[n].colour] for n in ("mbo", "local", "graybox")] == [
        "-",
        "--",
        ":",
    ]
    text = figure.get_supxlabel().replace("\n", " ")
    assert "solid: costs only, dashed: structure, dotted: costs of parts" in text and "compiling is not counted" in text
    assert data.groupby("strategy")["level"].first()["graybox"] == "parts"


def test_no_figure_ranks_a_strategy_that_sees_parts_with_others(three):
    assert set(critical_data(ranked_together(three))["strategy"]) == {*COSTS} - {"graybox"}
    for draw in (draw_critical, draw_profile):
        figure, data = draw(three)
        assert "graybox" not in set(data["strategy"])
        assert "because they see costs of parts: graybox" in figure.get_supxlabel().replace("\n", " ")
    cells = heat_data(three)
    first = cells[cells["problem"] == "p/0"]
    assert first["strategy"].tolist()[0] == "local" and first["strategy"].tolist()[-1] == "graybox"
    assert first.set_index("strategy")["share"][["local", "graybox"]].tolist() == [1, 1]


def test_strategies_that_all_see_parts_are_ranked(three):
    every = three.assign(level="parts")
    assert ranked_together(every) is every
    costs = three.assign(level="costs")
    assert ranked_together(costs) is costs
