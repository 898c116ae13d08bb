from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bbo_suite.store.folders import PLANNED
from bbo_suite.store.plan import RunName, add_planned, read_planned, share

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
