"""What identifies a run, and which runs a study has: a changed file gives one sentence that names it."""

import json
import math
from collections import Counter

import pytest
from bbo_toys import FACTS, Climber, Toy, perform, run_of
from hypothesis import given
from hypothesis import strategies as st

import bbo_suite
from bbo_suite import UserError
from bbo_suite.store.folders import PLANNED
from bbo_suite.store.identity import end_reason, read_end, read_head, write_head
from bbo_suite.store.plan import RunName, add_planned, read_planned, share

HEAD = run_of(Toy(), Climber).identity() | FACTS | {"parameters": 7, "baselines": {"-O3": 2.0}, "bound": 1.5}


@pytest.mark.parametrize("change", [{"default": 40.0}, {"seed": 1}, {"extra": 1}, {"baselines": {"-O3": 2.5}}])
def test_a_fact_that_was_changed_after_it_was_written_is_refused(tmp_path, change):
    write_head(tmp_path, HEAD)
    assert read_head(tmp_path) == HEAD
    stored = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps(stored, indent=None, sort_keys=True))  # the text is not the content
    assert read_head(tmp_path) == HEAD
    (tmp_path / "run.json").write_text(json.dumps(stored | change))
    with pytest.raises(UserError, match=r"run\.json was changed after it was written"):
        read_head(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("default", [None, "4", True, 0, -4.0, math.nan, math.inf, [4.0], 10**400]),
        ("seed", [None, "0", 1.0, True, -1, 2**63, []]),
        ("budget", [0, "9", 9.5, {}]),
        ("batch", [0, None, False]),
        ("problem", [None, "", 5, ["toy/small"], {}]),
        ("strategy", ["", 5, []]),
        ("fingerprint", [0, None, []]),
        ("unit", [None, 1]),
        ("options", [None, [], "x"]),
        ("level", [None, 1, "all", []]),
        ("optimum", ["1", True, [], 10**400]),
        ("bound", ["1", {}]),
        ("baselines", [[], "x", {"-O3": "2"}, {"-O3": None}]),
        ("parameters", [0, "7", 7.0]),
        ("imported", [True, "a.csv", []]),
        ("machine", ["Z80", None]),
        ("versions", [[], None]),
        ("noisy", ["yes", 1]),
        ("plain_seeds", ["yes", 0]),
        ("code", [5, {}]),
        ("unversioned", [True]),
        ("published_in", [5]),
        ("check", [5, None, ""]),
    ],
)
def test_a_fact_of_a_wrong_type_is_one_sentence_that_names_it(tmp_path, key, values):
    perform(tmp_path)
    before = (tmp_path / "rows.csv").read_bytes()
    for value in values:
        (tmp_path / "run.json").write_text(json.dumps(HEAD | {key: value}))
        with pytest.raises(UserError, match=rf"{key}|level|checksum") as caught:
            read_head(tmp_path)
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 400
        assert perform(tmp_path)  # the rows say which run it is, so it is written again
        assert read_head(tmp_path)["default"] == 4.0 and (tmp_path / "rows.csv").read_bytes() == before


def test_runs_of_before_have_no_checksum_and_fewer_facts(tmp_path):
    old = {key: fact for key, fact in HEAD.items() if key not in ("parameters", "baselines", "bound", "level")}
    (tmp_path / "run.json").write_text(json.dumps(old))
    assert read_head(tmp_path) == old | {"level": "costs"}


@pytest.mark.parametrize("evaluations", ["40", 40.0, True, None, [40], -1, 10**400])
def test_an_end_of_a_wrong_type_is_none(tmp_path, evaluations):
    perform(tmp_path)
    assert end_reason(tmp_path, 40) == "budget"
    for end in ({"evaluations": evaluations, "reason": "budget"}, {"evaluations": 40, "reason": ["budget"]}):
        (tmp_path / "end.json").write_text(json.dumps(end))
        assert end_reason(tmp_path, 40) is None
        with pytest.raises(UserError, match="does not say when and why"):
            read_end(tmp_path)


def test_ten_times_the_default_is_no_speedup_in_any_command(suite, tmp_path):
    study = bbo_suite.run(Climber, Toy, budget=10, study="s", results=tmp_path / "results", quiet=True, jobs=1)
    file = next(study.path.glob("*/run.json"))
    right, stored = study[0]["speedup"], json.loads(file.read_text())
    file.write_text(json.dumps(stored | {"default": 10 * stored["default"]}))
    for command in ("report s", "plot s", "best s", "export s --to csv", "site --out out"):
        done = suite(*command.split())
        assert done.code == 1 and "changed after it was written" in done.err and f"{10 * right:.1f}" not in done.out
    again = bbo_suite.run(Climber, Toy, budget=10, study="s", results=tmp_path / "results", quiet=True, jobs=1)
    assert again[0]["speedup"] == right and json.loads(file.read_text()) == stored


RUNS = st.builds(
    lambda problems, strategies, seeds: [
        RunName(f"fusion/p{p}", f"s{s}", seed)
        for p in range(problems)
        for s in range(strategies)
        for seed in range(seeds)
    ],
    *(st.integers(1, 5),) * 3,
)


@given(RUNS, st.integers(1, 40))
def test_shares_are_disjoint_complete_and_balanced(runs, shares):
    dealt = [share(runs, number + 1, shares) for number in range(shares)]
    assert sorted(run for part in dealt for run in part) == sorted(runs)
    assert all(
        part == [run for run in runs if run in mine] for part, mine in zip(dealt, map(set, dealt), strict=True)
    )  # problem by problem, as planned
    lengths = [len(part) for part in dealt]
    assert max(lengths) - min(lengths) <= 1
    for strategy in {run.strategy for run in runs}:
        each = [Counter(run.strategy for run in part)[strategy] for part in dealt]
        assert max(each) - min(each) <= 1


def test_a_share_is_no_slice_of_the_seeds_or_problems():
    runs = [RunName(f"fusion/p{p}", s, seed) for p in range(20) for s in ("mbo", "random") for seed in range(10)]
    for number in range(1, 11):
        mine = share(runs, number, 10)
        assert len({run.seed for run in mine}) > 5 and len({run.problem for run in mine}) > 10


def test_the_list_grows_and_is_written_once(tmp_path):
    runs = [RunName('fusion:/tmp/a,\n"b".hlo', "mbo", 0), RunName("größe/x", "random", 7)]
    assert read_planned(tmp_path) == []
    add_planned(tmp_path, runs[:1])
    before = (tmp_path / PLANNED).read_bytes()
    add_planned(tmp_path, runs)
    assert read_planned(tmp_path) == runs
    assert (tmp_path / PLANNED).read_bytes().startswith(before)
    after = (tmp_path / PLANNED).stat()
    add_planned(tmp_path, runs)
    assert (tmp_path / PLANNED).stat() == after


@pytest.mark.parametrize("cut", range(1, 50, 7))
def test_a_list_that_a_crash_cut_is_read_and_mended(tmp_path, cut):
    runs = [RunName("fusion/rnn", "mbo", seed) for seed in range(3)]
    add_planned(tmp_path, runs)
    file = tmp_path / PLANNED
    whole = file.read_bytes()
    file.write_bytes(whole[:-cut])
    assert read_planned(tmp_path) == runs[:2]
    add_planned(tmp_path, runs)
    assert file.read_bytes() == whole


@pytest.mark.parametrize("line", ["", "{", "[]", "null", '{"problem": "a/b"}', '{"x": 1}', "\0"])
def test_foreign_lines_are_passed_over(tmp_path, line):
    runs = [RunName("fusion/rnn", "mbo", seed) for seed in range(3)]
    add_planned(tmp_path, runs[:2])
    with (tmp_path / PLANNED).open("a") as file:
        file.write(f"{line}\n")
    add_planned(tmp_path, runs)
    assert read_planned(tmp_path) == runs
