"""All figures of the registry: what each needs, what it draws by hand, and studies that are awkward."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from bbo_toys import frame
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from bbo_suite import UserError, figures
from bbo_suite.figures import FIGURES, paper
from bbo_suite.figures.critical import critical_data
from bbo_suite.figures.ecdf import TARGETS, ecdf_data
from bbo_suite.figures.exploration import exploration_data
from bbo_suite.figures.gains import gains_data
from bbo_suite.figures.heat import gain_text, heat_data
from bbo_suite.figures.highlight import highlighted, labels
from bbo_suite.figures.overhead import overhead_data
from bbo_suite.figures.profile import profile_data
from bbo_suite.figures.total_time import total_time_data
from bbo_suite.report.drawings import pictures
from bbo_suite.scores import final_values

NAMES = list(figures.FIGURES)


def study(cost, problems=4, strategies=3, seeds=2):
    """Return the runs of `{(problem, strategy, seed): costs}` with the costs that a function of three numbers gives."""
    return {(f"p/{p}", f"s{s}", r): cost(p, s, r) for p in range(problems) for s in range(strategies)
            for r in range(seeds) if np.size(cost(p, s, r))}  # fmt: skip


HOSTILE = ["<b>&amp;", "$x$ 100%", "_größe\n{x}", "日本\udc80"]
AWKWARD = {
    "one run": study(lambda p, s, r: [4.0, 2.0], 1, 1, 1),
    "one evaluation": study(lambda p, s, r: [7.0], 1, 1, 1),
    "one repeat": study(lambda p, s, r: [8.0 - s, 7.0 - p / 9], seeds=1),
    "one problem": study(lambda p, s, r: [8.0 - s, 7.0 - r], 1),
    "unequal": study(lambda p, s, r: [7.0 + r] * (1 + p + 5 * s), seeds=3),
    "missing": study(lambda p, s, r: [] if (p + s + r) % 3 == 0 else [7.0 - s / 9]),
    "nothing shared": study(lambda p, s, r: [] if p % 4 != s else [7.0]),
    "all failed": study(lambda p, s, r: [np.inf] * 3),
    "some failed": study(lambda p, s, r: [np.inf] * 3 if s == p % 4 else [7.0]),
    "ties": study(lambda p, s, r: [8.0] * 3),
    "free": study(lambda p, s, r: [0.0, 0.0]),
    "some free": study(lambda p, s, r: [0.0 if s == r else 6.0 + s / 9]),
    "far apart": study(lambda p, s, r: [1e9 if s else 1e-9]),
    "slower": study(lambda p, s, r: [9.0 + s]),
    "hostile": {(f"{HOSTILE[p % 4]}/{p}", HOSTILE[s], 0): [7.0 - s] for p in range(5) for s in range(4)},
    "long": {(f"f:{'/long' * 50}{p}", f"{s}" * 200, 0): [7.0 - s] for p in range(4) for s in range(4)},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.thorough] if place % 2 else []) for place, name in enumerate(AWKWARD)],
)
def test_awkward_studies_are_drawn_without_a_warning(name):
    drawn, made = 0, frame(AWKWARD[name], structured=("s1", HOSTILE[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Glyph .* missing")
        for drawing in figures.FIGURES.values():
            if drawing.missing(made) is None:
                for _, figure, data in drawing.pages(made):
                    FigureCanvasAgg(figure).draw()
                    numbers = data.select_dtypes("number").drop(columns=["importance"], errors="ignore")
                    drawn += len(data) > 0 and (numbers.fillna(0) >= -1).all(axis=None)
    assert drawn >= 4


@pytest.mark.slow
def test_what_is_left_out_and_why():
    one = frame(AWKWARD["one run"])
    assert set(figures.left_out(one)) == {"profile", "critical", "heat", "gains", "exploration"}
    assert set(figures.left_out(one, names=["critical", "ecdf"])) == {"critical"}
    apart = figures.left_out(frame(AWKWARD["nothing shared"]))
    assert "4 problems" in apart["critical"] and "2 strategies" in apart["ecdf"]
    assert "beats the default" in figures.left_out(frame(AWKWARD["ties"]))["ecdf"]
    assert set(figures.left_out(frame(AWKWARD["one repeat"]))) == {"exploration"}
    with pytest.raises(UserError, match=r"'hat'.*'heat'"):
        figures.left_out(one, names=["hat"])


@pytest.mark.slow
def test_formats_and_names(tmp_path):
    made = frame(AWKWARD["one repeat"])
    paths = list(figures.write(made, tmp_path / "a", names=["heat", "exploration"], formats=["pdf", "png"]))
    assert [path.name for path in paths] == ["heat.pdf", "heat.png"]
    assert b"/FontFile2" in paths[0].read_bytes()  # TrueType, embedded
    again = list(figures.write(made, tmp_path / "b", names=["heat"], formats=["pdf"]))
    assert again[0].read_bytes() == paths[0].read_bytes()


def caption_of(figure):
    return " ".join(figure.get_supxlabel().split())


@pytest.mark.slow
@pytest.mark.parametrize("drawing", figures.FIGURES.values(), ids=NAMES)
def test_a_caption_says_runs_and_what_is_better(drawing):
    if drawing.name == "exploration":
        pytest.skip("shows one run")
    figure, _ = drawing(frame(study(lambda p, s, r: [8 - s - p / 9], seeds=3), structured=("s1",)))
    assert "n = " in caption_of(figure) and drawing.question.endswith("?")
    assert "better" in caption_of(figure) or "the best" in caption_of(figure)
    words = [t.get_text() for t in figure.findobj(lambda a: hasattr(a, "get_text"))]
    assert any("s1 (uses structure)" in text for text in words)


@pytest.mark.slow
@pytest.mark.parametrize("drawing", figures.FIGURES.values(), ids=NAMES)
def test_a_caption_says_how_many_runs_are_cut_short(drawing):
    if drawing.name == "exploration":
        pytest.skip("shows one run")
    made = frame(study(lambda p, s, r: [8 - s - p / 9] * (4 if s else 3)))
    assert "8 of 24 runs are shorter than their budget." in caption_of(drawing(made)[0])
    whole = made[made["strategy"] != "s0"]
    assert drawing.missing(whole) or "their budget" not in caption_of(drawing(whole)[0])


def test_ends_of_runs_that_are_interleaved():
    made = frame({("p", "a", 0): [4.0, 2.0], ("p", "a", 1): [8.0], ("p", "b", 0): [16.0, 8.0]})
    mixed = made.iloc[[0, 2, 3, 1, 4]]
    for rows in (made, mixed):
        assert final_values(rows).frame[["strategy", "seed", "speedup"]].to_numpy().tolist() == [
            ["a", 0, 4],
            ["a", 1, 1],
            ["b", 0, 1],
        ]


def test_ecdf_by_hand():
    made = frame({("p", "a", 0): [8.0, 6.0, 4.0], ("p", "a", 1): [8.0, 8.0, 8.0], ("p", "b", 0): [6.0, 6.0, 6.0]})
    data = ecdf_data(made).pivot(index="evaluation", columns="strategy", values="share")
    # 50 targets from 8 (left out) to 4: half of them at 6 and above
    assert TARGETS == 50 and data["a"].tolist() == [0, 0.25, 0.5] and data["b"].tolist() == [0.5] * 3
    # a second problem counts as much as the first, however many runs it has; a third, that b did not run, not at all
    more = {("q", "a", r): [8.0, 8.0, 4.0] for r in range(5)} | {("q", "b", 0): [4.0] * 3, ("r", "a", 0): [1.0] * 3}
    both = pd.concat([made, frame(more)]).astype({"problem": "category", "strategy": "category"})
    data = ecdf_data(both).pivot(index="evaluation", columns="strategy", values="share")
    assert data["a"].tolist() == [0, 0.125, 0.75] and data["b"].tolist() == [0.75] * 3


def test_total_time_by_hand():
    made = frame({("p", "a", 0): [8.0, 4.0, 2.0], ("p", "a", 1): [8.0, 8.0]}, seconds=(0.5, 0.5))
    data = total_time_data(made)
    # known after 1, 2 and 3 seconds; the second run ends after 2 seconds and keeps its best
    assert (data["seconds"].iloc[0], data["seconds"].iloc[-1]) == (1.0, pytest.approx(3.0))
    late = data["seconds"] >= 2
    assert data["median"][~late].eq(1).all() and data["median"][late].iloc[:-1].eq(1.5).all()
    assert data["median"].iloc[-1] == 2.5 and data["ended"].tolist() == (data["seconds"] > 2).astype(int).tolist()
    assert "A cross: the first run of the strategy ends here" in caption_of(FIGURES["time"](made)[0]).replace("\n", " ")
    assert set(data["runs"]) == {2}


def test_overhead_by_hand():
    made = frame({("p", "a", 0): [8.0, 4.0], ("pp", "a", 0): [8.0]}, seconds=(0.5, 0.25))
    made.loc[0, "strategy_seconds"] = 1.5
    data = overhead_data(made)
    assert data[["parameters", "strategy_seconds", "evaluation_seconds"]].to_numpy().tolist() == [
        [1, 1, 0.25],
        [2, 0.5, 0.25],
    ]


def test_profile_by_hand():
    made = frame(
        {(p, s, 0): [c] for p, a, b in (("p", 4, 4), ("q", 4, 6), ("r", 5, 4)) for s, c in (("a", a), ("b", b))}
    )
    data = profile_data(made)
    a, b = (data[data["strategy"] == name].set_index("factor")["share"] for name in "ab")
    assert a.iloc[0] == b.iloc[0] == 2 / 3  # each is the best on two of three
    assert a[a.index < 1.249].max() == 2 / 3 and a[a.index > 1.251].min() == 1
    assert b[b.index < 1.499].max() == 2 / 3 and b.iloc[-1] == 1


@pytest.mark.slow
def test_critical_differences_against_scikit_posthocs():
    posthocs = pytest.importorskip("scikit_posthocs")
    rng = np.random.default_rng(0)
    made = frame(study(lambda p, s, r: [8.0 - s * 0.3 - rng.random()], problems=12, strategies=7, seeds=1))
    data = critical_data(made)
    table = final_values(made).frame.pivot(index="problem", columns="strategy", values="speedup")
    p = posthocs.posthoc_nemenyi_friedman(table).loc[data["strategy"], data["strategy"]].to_numpy()
    groups = [set(group) for group in data["groups"]]
    joined = np.array([[bool(a & b) or i == j for j, b in enumerate(groups)] for i, a in enumerate(groups)])
    assert (joined == (p > 0.05)).all() and 0 < joined.sum() < joined.size
    assert data["rank"].tolist() == sorted(table.rank(axis=1, ascending=False).mean().tolist())


def test_heat_by_hand():
    costs = {("p", "a"): 4, ("p", "b"): 6.4, ("q", "a"): 9, ("q", "b"): 8, ("r", "b"): 4}
    data = heat_data(frame({(*key, 0): [cost] for key, cost in costs.items()}))
    found = {(c.problem, c.strategy): c.share for c in data.itertuples()}
    assert found.keys() == costs.keys()  # a did not run r
    assert found["p", "a"] == found["r", "b"] == 1 and found["p", "b"] == pytest.approx(0.25)
    assert np.isnan(found["q", "a"]) and np.isnan(found["q", "b"])


def test_a_gain_that_is_next_to_nothing_is_none():
    made = frame({("p", "a", 0): [8 / (1 + 2e-7)], ("p", "b", 0): [8.0], ("q", "a", 0): [6.0], ("q", "b", 0): [4.0]})
    shares = heat_data(made).pivot(index="problem", columns="strategy", values="share")
    assert shares.loc["p"].isna().all() and shares.loc["q"].tolist() == pytest.approx([1 / 3, 1])
    assert set(ecdf_data(made)["problems"]) == {1}
    assert "none where the best gain is below 0.1 %" in caption_of(FIGURES["heat"](made)[0]).replace("\u00a0", " ")


def test_a_heat_map_shows_gains_and_colours_those_that_matter():
    made = frame({("p", "a", 0): [8 / 1.0002], ("p", "b", 0): [8.0], ("q", "a", 0): [6.4], ("q", "b", 0): [4.0]})
    figure, data = FIGURES["heat"](made)
    assert [text.get_text() for text in figure.axes[0].texts] == ["0.00", "100", "0.02", "25.0"]
    assert data["share"].isna().tolist() == [name == "p" for name in data["problem"]]
    assert [gain_text(gain) for gain in (12.345, -0.5, 0.0123, 1e-5, np.inf)] == ["1234", "-50.0", "1.2", "0.00", "∞"]


@pytest.mark.slow
def test_bars_of_gains_are_all_named_or_grouped_by_family_and_the_axis_holds_their_intervals():
    few = frame(study(lambda p, s, r: [8.0, 7.99 - p / 1000 - r], problems=3, strategies=1))
    axes = FIGURES["gains"](few)[0].axes[0]
    assert [name.get_text() for name in axes.get_xticklabels()] == ["p/2", "p/1", "p/0"]
    data = gains_data(few)
    assert axes.get_ylim()[1] > data["high"].max() > data["gain"].max() and axes.get_ylim()[0] < 0 < data["low"].min()
    many = {(f"{'pq'[p % 2]}/{p}", "a", 0): [8.0 - p / 9] for p in range(42)}
    figure, data = FIGURES["gains"](frame(many))
    assert [name.get_text() for name in figure.axes[0].get_xticklabels()] == ["p (21)", "q (21)"]
    assert data["problem"].tolist()[:2] == ["p/40", "p/38"]


@pytest.mark.slow
def test_gains_are_sorted_and_of_the_best_six():
    made = frame(study(lambda p, s, r: [8 / (1 + (p + 1) * (s + 1) / 100)], problems=3, strategies=8))
    data = gains_data(made)
    assert list(dict.fromkeys(data["strategy"])) == ["s7", "s6", "s5", "s4", "s3", "s2"]
    assert data["problem"].tolist()[:3] == ["p/2", "p/1", "p/0"]
    assert data["gain"].tolist()[:3] == pytest.approx([0.24, 0.16, 0.08])


def test_what_a_run_explored_by_hand():
    made = frame({("p", "a", 0): [8.0, 9.0, 6.0, 4.0]}, configs=["000", "", "010", "Z10"])
    data = exploration_data(made, names=["x", "y", "z"].__getitem__).set_index("name")
    assert data["changed"].to_dict() == {"y": (3,), "x": (4,)}
    assert data["importance"].isna().all()  # of three candidates there is none
    figure, _ = FIGURES["exploration"](made)
    assert "The 2 parameters of 3 that changed most often;" in caption_of(figure) and len(figure.axes) == 1
    dashes = frame({("p", "a", 0): [8.0, 6.0]}, configs=["0-99", "0-100"])
    assert exploration_data(dashes)["name"].tolist() == ["x1"]


@pytest.mark.slow
def test_importance_finds_what_matters(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (300, 30))
    made = frame({("p", "a", 0): 4.0 + rows[:, 7] + 0.2 * rows[:, 3]}, configs=["".join(map(str, r)) for r in rows])
    data = exploration_data(made)
    assert data["parameter"].tolist()[:2] == [7, 3] and data["importance"].iloc[0] > 0.6 and len(data) == 20
    figure, _ = FIGURES["exploration"](made)
    assert "all 300 candidates" in caption_of(figure)
    assert "The 20 parameters of 30 that matter most;" in caption_of(figure) and len(figure.axes) == 2
    assert [path.name for path in figures.write(made, tmp_path, names=["exploration"], formats=["svg"])] == [
        "exploration.svg"
    ]
    made.loc[1::2, "config"] = ""
    assert "the 150 candidates that improved, a small and biased sample" in caption_of(FIGURES["exploration"](made)[0])


@pytest.fixture(scope="module")
def crowd():
    return frame(study(lambda p, s, r: [8.0, 8.0 - (s * 7 % 40) / 40], 11, 40, 1), structured=("s39",))


@pytest.mark.parametrize("name", ["ecdf", "profile", "critical"])
def test_who_ran_on_few_problems_does_not_keep_the_others_from_being_compared(name):
    made = frame(
        study(lambda p, s, r: [7.0 - s / 9] if s < 3 or p == 0 else [], strategies=4) | {("q", "s1", 0): [7.0]}
    )
    drawing = figures.FIGURES[name]
    assert drawing.missing(made) is None
    figure, data = drawing(made)
    assert set(data["strategy"]) == {"s0", "s1", "s2"} and set(data["problems"]) == {4}
    assert "the 4 of 5 problems that all of these strategies ran" in caption_of(figure)
    assert "Left out, because they did not run all of these problems: s3." in caption_of(figure)
    for legend in figure.legends:
        assert {text.get_text() for text in legend.get_texts()} == {"s0", "s1", "s2"}


@pytest.mark.slow
def test_a_crowd_is_drawn_in_grey_with_the_best_named(crowd):
    who = highlighted(crowd)
    best = {f"s{s}" for s in range(40) if s * 7 % 40 >= 32}
    assert set(who.looks) == best and len(who.labels) == 40
    figure, _ = FIGURES["convergence"](crowd, problems=["p/0", "p/1"])
    colours = [line.get_color() for line in figure.axes[0].lines[1:]]
    assert len(colours) == 40 and colours[:32] == ["0.78"] * 32 and len(set(colours[32:])) == 8
    assert [text.get_text() for text in figure.legends[0].get_texts()][-1] == "32 others"
    assert "Highlighted: the 8 best of 40 strategies by mean rank." in caption_of(figure)
    figure, data = FIGURES["speedup"](crowd, problems=["p/0"])
    assert len(figure.axes[0].patches) == len(data) == 12 and "best 12 of 40" in caption_of(figure)


@pytest.mark.slow
def test_many_problems_take_pages(crowd):
    drawing = figures.FIGURES["speedup"]
    pages = list(drawing.pages(crowd[crowd["strategy"].isin(["s1", "s2"])]))
    assert [stem for stem, _, _ in pages] == ["speedup-1", "speedup-2"]
    shown = [set(data["problem"]) for _, _, data in pages]
    assert [len(problems) for problems in shown] == [9, 2] and len(set.union(*shown)) == 11


@pytest.mark.slow
def test_of_very_many_problems_those_with_the_largest_gain_are_drawn():
    many = frame({(f"p/{p:02}", "a", 0): [8.0 - p / 9] for p in range(40)})
    stem, figure, data = next(figures.FIGURES["speedup"].pages(many))
    assert stem == "speedup-1" and set(data["problem"]) == {f"p/{p}" for p in range(13, 22)}
    assert "the 27 of 40 problems with the largest gain" in caption_of(figure).replace("\n", " ")
    speedup = pictures(many, only_results=True)[0]  # in a report each problem has a drawing, and all have one caption
    assert len(speedup.drawings) == 3 and "the 3 of 40 problems" in speedup.caption


@pytest.mark.slow
def test_pages_of_an_earlier_drawing_are_cleared(crowd, tmp_path):
    few = crowd[crowd["strategy"].isin(["s1", "s2"])]
    foreign = tmp_path / "speedup-mine.png"
    foreign.touch()
    for part, stems in ((few, ["speedup-1", "speedup-2"]), (few[few["problem"] == "p/0"], ["speedup"])):
        drawn = list(figures.write(part, tmp_path, names=["speedup"], formats=["png"]))
        assert drawn == [tmp_path / f"{stem}.png" for stem in stems]
        assert sorted(tmp_path.glob("*")) == sorted([*drawn, foreign])


def test_long_names_that_are_cut_alike_are_told_apart(crowd):
    names = [
        "nevergrad:UltraSmoothDiscreteLenglerOnePlusOne",
        "nevergrad:UltraSmoothRecombiningDiscreteLenglerOnePlusOne",
    ]
    part = crowd[crowd["strategy"].isin(["s1", "s2"])]
    named = part.assign(strategy=part["strategy"].astype(str).map(dict(zip(["s1", "s2"], names, strict=True))))
    assert len(set(labels(named).values())) == 2


@pytest.mark.slow
def test_a_figure_for_a_paper_fits_a_column_or_a_page_and_its_caption_stands_beside_it(tmp_path):
    many = frame(study(lambda p, s, r: [8.0 - s, 7.0 - p / 9 - r / 9 - s / 5]))
    names = ["speedup", "ecdf", "critical", "heat"]
    paths = list(figures.write(many, tmp_path, names=names, formats=["pdf"], for_paper=True))
    assert {path.suffix for path in paths} == {".pdf", ".txt"} and len(paths) == 8
    captions = {path.stem: path.read_text() for path in paths if path.suffix == ".txt"}
    assert captions["heat"].startswith("Number: gain over the compiler's default") and captions["heat"].count("\n") == 1
    for file in paths:
        data = file.read_bytes()
        if file.suffix == ".pdf":
            width = float(re.search(rb"/MediaBox \[ ?0 0 ([\d.]+)", data)[1]) / 72
            assert width == pytest.approx(3.4, abs=0.01) or width == pytest.approx(7, abs=0.01)
            assert b"/FontFile2" in data and b"/Type3" not in data  # embedded, as text
    assert min(len(text) for text in captions.values()) > 60


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one run", "long", "free", "all failed", "hostile"])
def test_awkward_studies_fit_a_paper(name):
    made = frame(AWKWARD[name], structured=("s1", HOSTILE[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Glyph .* missing")
        for drawing in list(figures.FIGURES.values())[:3]:
            if drawing.missing(made) is None:
                _, figure, _ = next(drawing.pages(made))
                assert paper.fit(figure)
                sizes = [text.get_fontsize() for text in figure.findobj(Text) if text.get_visible()]
                titles = ["".join(ax.get_title().split()) for ax in figure.axes if ax.get_title()]
                assert all(
                    title == "".join(ax.title.get_label().split())
                    for title, ax in zip(titles, figure.axes, strict=False)
                )
                assert max(sizes) <= 8 and figure.get_figwidth() in (paper.COLUMN, paper.PAGE)
