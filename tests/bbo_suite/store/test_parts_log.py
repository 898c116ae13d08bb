"""What a run stores beside its rows: the parts of its candidates, and what the strategy reports about itself."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bbo_toys import frame, perform

import bbo_suite
from bbo_suite import Evaluations, Parts, Problem, Space, Strategy, UserError, figures
from bbo_suite.core.problem import Status
from bbo_suite.figures.models import hits_data
from bbo_suite.parts.parts import concatenated
from bbo_suite.store.diagnostics import Diagnostics, load_diagnostics
from bbo_suite.store.folders import DIAGNOSTICS
from bbo_suite.store.parts_log import PartsLog


class Bags(Problem):
    """Four bags; the first fails at 3, and the cost of the last varies."""

    noisy = True
    instances = ("four",)

    def __init__(self, instance="four"):
        self.space, self.default = Space([4] * 4), np.ones(4, int)

    def evaluate(self, configs):
        return self.evaluate_parts(configs)

    def evaluate_parts(self, configs):
        costs = configs.astype(float) ** 2 + 1
        costs[:, 3] += 0.25 * (configs.sum(axis=1) % 2)
        costs[configs[:, 0] == 3, 0] = np.inf
        kept = configs != 2
        keys = (configs + 4 * np.arange(4)).astype(np.uint64)[kept]
        starts = np.append(0, np.cumsum(kept.sum(axis=1)))
        values = np.where(kept, costs, 0).sum(axis=1)
        status = np.where(np.isinf(values), Status.COMPILE_ERROR, Status.OK).astype(np.int8)
        return Evaluations(values, status, parts=Parts(starts, keys, np.ones(len(keys)), costs[kept]))


class Listener(Strategy):
    """Proposes what follows from all that it was told of parts."""

    level = bbo_suite.Level.PARTS
    heard = 0.0

    def ask(self, n):
        rng = np.random.default_rng(int(self.heard * 64))
        return rng.integers(0, 4, (n, 4))

    def receive(self, told):
        parts = told.parts
        costs = np.where(np.isinf(parts.costs), 100.0, parts.costs)
        self.heard += float((costs * parts.counts * (parts.keys + 1)).sum()) + len(parts.starts)


def run(folder, **options):
    bbo_suite.run(Listener, Bags, budget=60, batch=7, study="s", results=folder, quiet=True, **options)
    return next(Path(folder, "s").glob("*/rows.csv")).parent


def columns(path):
    return [line.split(",")[:4] for line in (path / "rows.csv").read_text().splitlines()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return run(tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("cut", [70, 700, 1500, 2500])
def test_a_run_that_was_killed_hears_the_same_parts_again(whole, cut, tmp_path):
    shutil.copytree(whole.parent.parent, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "s" / whole.name
    rows, parts = path / "rows.csv", path / "parts.csv"
    rows.write_bytes(rows.read_bytes()[:cut])
    parts.write_bytes(parts.read_bytes() + b"61,torn")
    (path / "end.json").unlink()
    run(tmp_path)
    assert columns(path) == columns(whole)


def test_parts_that_are_missing_or_damaged_stop_a_resume_and_change_nothing(whole, tmp_path):
    shutil.copytree(whole.parent.parent, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "s" / whole.name
    (path / "end.json").unlink()
    rows, parts, log = (path / "rows.csv").read_bytes(), path / "parts.csv", (path / "parts.csv").read_bytes()
    lines = log.splitlines(keepends=True)
    wrong = {
        "lacks evaluation 60": b"".join(lines[:-1]),
        "line 3 is damaged": log.replace(b"\n2,", b"\n2, ", 1),
        "line 1 is damaged": log[1:],
    }
    for why, text in wrong.items():
        parts.write_bytes(text)
        with pytest.raises(UserError, match=why):
            run(tmp_path)
        assert (path / "rows.csv").read_bytes() == rows and parts.read_bytes() == text


def test_a_log_keeps_each_cost_once(tmp_path):
    log, parts = (
        PartsLog(tmp_path),
        told([{1: (1, 0.5), 2: (3, 0.25)}, {1: (1, 0.5)}, {}, {2: (3, 0.25), 1: (2, 0.75)}]),
    )
    log.append(1, parts)
    lines = [line.split(",")[1] for line in (tmp_path / "parts.csv").read_text().splitlines()[1:]]
    assert lines == ["0000000000000001*1.0=0.5 0000000000000002*3.0=0.25", "-1", "-0", "+0*2.0=0.75 +1"]
    again = PartsLog(tmp_path)
    replayed = concatenated([again.replay(1, 3), again.replay(4, 1)])
    for name in ("starts", "keys", "counts", "costs"):
        assert np.array_equal(getattr(replayed, name), getattr(parts, name))


def test_a_log_of_equal_candidates_grows_by_a_few_bytes_each(tmp_path):
    log, parts = PartsLog(tmp_path), told([{key: (1, 0.5) for key in range(1000)}])
    for evaluation in range(1, 101):
        log.append(evaluation, parts)
    lines = (tmp_path / "parts.csv").read_bytes().splitlines()
    assert len(lines) == 101 and max(map(len, lines[2:])) < 20


def told(candidates):
    rows = [(key, *candidate[key]) for candidate in candidates for key in sorted(candidate)]
    keys, counts, costs = np.array(rows).T
    return Parts(np.cumsum([0, *map(len, candidates)]), keys.astype(np.uint64), counts, costs)


def test_a_strategy_that_uses_parts_hears_none_of_a_problem_without_them(tmp_path):
    heard = []

    class Hears(Listener):
        def receive(self, told):
            heard.append(told.parts)

    class Plain(Problem):
        instances = ("four",)

        def __init__(self, instance="four"):
            self.space, self.default = Space([4] * 4), np.ones(4, int)

        def evaluate(self, configs):
            return Evaluations.of(configs.sum(axis=1) + 1.0)

    bbo_suite.run(Hears, Plain, budget=20, batch=10, study="s", results=tmp_path, quiet=True)
    assert heard == [None]


NUMBERS = [(10, {}), (20, {"score/a": 0.5, "score/b": -1.0}), (30, {"score/a": 0.5, "score/b": -1.0}), (40, {"x": 0.1})]
TEXT = "evaluation,name,value\n20,score/a,0.5\n20,score/b,-1.0\n40,x,0.1\n"


def play(folder, numbers=NUMBERS):
    writer = Diagnostics(folder)
    for evaluation, values in numbers:
        writer.take(evaluation, values)
    return folder / DIAGNOSTICS


def test_numbers_are_kept_when_they_change(tmp_path):
    assert play(tmp_path).read_text() == TEXT


@pytest.mark.parametrize("cut", [0, 5, 22, 23, 40, 60, len(TEXT) - 1])
def test_a_file_cut_at_any_byte_is_completed_by_saying_the_same_again(tmp_path, cut):
    (tmp_path / DIAGNOSTICS).write_text(TEXT[:cut])
    assert play(tmp_path).read_text() == TEXT


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / DIAGNOSTICS).write_text("evaluation,name,value\nten,a,0.5\n")
    with pytest.raises(UserError, match=r"diagnostics.csv, line 2 is damaged"):
        Diagnostics(tmp_path)


@pytest.mark.parametrize("name", ["score/a,b", "a\nb", "a\rb", "a\x1b[31m", "a\u2028b", "a\udc80"])
def test_a_name_that_would_break_its_line_is_refused_when_it_is_reported(tmp_path, name):
    with pytest.raises(UserError, match=r"contract in diagnostics.*comma"):
        Diagnostics(tmp_path, "strategy s").take(10, {"x": 1.0, name: 0.5})
    assert not (tmp_path / DIAGNOSTICS).exists()


@pytest.mark.parametrize(
    "numbers", [None, [1.0], {1: 2.0}, {"a": "x"}, {"a": None}, {"a": np.ones(2)}, {"a": 1j}, {"a": 10**400}, {"": 1.0}]
)
def test_what_is_no_dict_of_numbers_is_refused(tmp_path, numbers):
    taken = Diagnostics(tmp_path, "strategy s")
    taken.take(10, {"a": 1.0})
    with pytest.raises(UserError, match=r"^strategy s broke its contract in diagnostics: "):
        taken.take(20, numbers)


def test_an_older_file_with_such_a_name_is_read_and_continued(tmp_path):
    run = tmp_path / "s" / "run"
    perform(run, budget=20)
    (run / DIAGNOSTICS).write_text("evaluation,name,value\n10,score/a,b,0.5\n10,x,1.0\n")
    read = load_diagnostics("s", tmp_path)
    assert list(zip(read["evaluation"], read["name"], read["value"], strict=True)) == [
        (10, "score/a,b", 0.5),
        (10, "x", 1.0),
    ]
    play(run, [(10, {"x": 1.0}), (20, {"x": 2.0})])
    assert (run / DIAGNOSTICS).read_text().splitlines()[-1] == "20,x,2.0"


@pytest.fixture
def said():
    rows = [("p", "s", seed, at, name, value) for seed, shift in ((0, 0.0), (1, 0.2)) for at, name, value in (
        (40, "hits/ridge", 1.1 + shift), (90, "hits/ridge", 7.5 + shift), (40, "hits/forest", 0.3), (40, "x", 7.0),
        (40, "score/ridge", -2.0)
    )]  # fmt: skip
    return pd.DataFrame(rows, columns=["problem", "strategy", "seed", "evaluation", "name", "value"])


def test_the_figure_of_the_models_shows_how_well_picks_were_chosen(said):
    figure, data = figures.MODELS(said)
    assert data["model"].tolist() == ["forest", "ridge", "ridge"] and set(data["runs"]) == {2}
    np.testing.assert_allclose(data["hits"], [0.3, 1.2, 7.6])
    (ax,), named = figure.axes, [text.get_text() for text in figure.legends[0].get_texts()]
    drawn = {
        name: (line.get_xdata().tolist(), line.get_ydata()) for name, line in zip(named, ax.lines[1:], strict=True)
    }
    assert set(drawn) == {"forest", "ridge"} and drawn["ridge"][0] == [40, 90]
    np.testing.assert_allclose(drawn["ridge"][1], [1.2, 7.6])
    assert ax.get_ylim()[0] == 0 and ax.get_ylim()[1] > 7.6 and list(ax.lines[0].get_ydata()) == [1, 1]
    assert ax.xaxis.get_major_formatter()(1000) == "1,000"  # no mathematics: names are literal text


def test_models_of_many_problems_take_pages_and_look_alike_on_all(said):
    lonely = said[said["name"] == "hits/ridge"].assign(problem="q")
    many = pd.concat([*(said.assign(problem=f"p{i}") for i in range(9)), lonely])
    pages = list(figures.MODELS.pages(many))
    assert [stem for stem, _, _ in pages] == ["models-1", "models-2"]
    assert [data["problem"].nunique() for _, _, data in pages] == [9, 1]
    ridge = [figure.axes[0].lines[-1].get_color() for _, figure, _ in pages]
    assert ridge[0] == ridge[1] and len(pages[1][1].axes[0].lines) == 2


@pytest.mark.slow
def test_no_scores_no_figure(said, tmp_path):
    other = said[said["name"].isin(["x", "score/ridge"])]
    assert hits_data(other).empty
    few = frame({("p", "s", 0): [4.0]}), tmp_path
    names = ["models", "speedup"]
    assert {path.stem for path in figures.write(*few, other, names)} == {"speedup"}
    assert "needs a strategy" in figures.left_out(few[0], other, ["models"])["models"]
    assert len([path for path in figures.write(*few, said, names) if path.stem == "models"]) == 2
    assert len(list(figures.write(*few, said, ["models"], ["pdf"]))) == 1
