"""What a `run.json` or `end.json` that was changed, cut off or written by hand does: one sentence that names it."""

import json
import math

import pytest
from bbo_toys import FACTS, Climber, Toy, perform, run_of

import bbo_suite
from bbo_suite import UserError
from bbo_suite.store.identity import end_reason, read_end, read_head, write_head

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
