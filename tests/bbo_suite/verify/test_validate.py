"""`validate` finds what is wrong with a study and its parts, names it, and says what it could not look at.

With `--digests`, it tells whether a study that was made again is the published one.
"""

import dataclasses
import json
import re
import shutil
from pathlib import Path

import pytest
from bbo_toys import perform

import bbo_suite
from bbo_suite import UserError
from bbo_suite.exchange.formats import export
from bbo_suite.files.log import checksummed
from bbo_suite.registry import Registry
from bbo_suite.store.folders import REMEASURED
from bbo_suite.store.identity import read_head, write_head
from bbo_suite.store.plan import RunName
from bbo_suite.store.remeasured import ROUNDS, Pair
from bbo_suite.store.rows import DEPARTS_BECAUSE, HEADER, read_rows
from bbo_suite.store.stored_run import open_run
from bbo_suite.verify.digests import RunDigest, compare, read_digests, write_digests
from bbo_suite.verify.validate import Finding, validate

RUN = "results/s/toy--small__annealing__0"


@pytest.fixture
def study(study):
    return (*study, "--quiet")


def edit(folder, place, **changes):
    """Change fields of one row and write the checksum that fits."""
    rows = read_rows(folder)
    rows[place] = dataclasses.replace(rows[place], **changes)
    (folder / "rows.csv").write_text(HEADER + "".join(row.line() for row in rows))
    return rows[place]


def failures(done):
    return [line for line in done.out.splitlines() if line.startswith("FAIL ")]


def test_a_study_that_holds(suite, study):
    assert "sample must be 0 or more" in suite("validate", *study, "--sample", -1).err
    done = suite("validate", *study)
    assert done.code == 0 and failures(done) == []
    assert done.out.count("holds") == 6 and "all checks passed" in done.out
    assert "evaluating" not in done.out


def test_a_study_that_is_cut_holds_and_is_named(suite, study, tmp_path):
    log = tmp_path / RUN / "rows.csv"
    log.write_bytes(log.read_bytes()[:900])
    (tmp_path / RUN / "end.json").unlink()
    done = suite("validate", *study)
    assert done.code == 0
    assert f"note annealing on toy/small, seed 0: unfinished: {len(read_rows(log.parent))} of 60" in done.out


@pytest.mark.parametrize(("place", "change"), [(0, -1.0), (5, 0.5), (59, -1.0)])
def test_an_edited_value_is_found_though_its_checksum_fits(suite, study, tmp_path, place, change):
    folder = tmp_path / RUN
    stored = read_rows(folder)[place].value
    edit(folder, place, value=max(0.0, stored + change))
    done = suite("validate", *study)
    assert done.code == 1
    assert any("annealing on toy/small, seed 0: " in line for line in failures(done))
    assert "does NOT hold" in done.out and "1 of 2 runs failed a check" in done.out
    assert [line for line in failures(done) if "pick" in line] == []


def test_the_best_value_is_looked_at_without_a_sample(suite, study, tmp_path):
    folder = tmp_path / RUN
    rows = read_rows(folder)
    place = min(range(60), key=lambda i: rows[i].value)
    edit(folder, place, value=rows[place].value / 2)
    done = suite("validate", *study, "--sample", 0)
    assert done.code == 1
    (line,) = failures(done)
    assert line.endswith(f"evaluation {place + 1} cost {rows[place].value / 2!r} and costs {rows[place].value!r} now")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"digest": "0" * 16}, "the strategy now proposes another candidate for evaluation "),
        ({"config": "0000"}, "has another digest"),
        ({"config": "zz"}, "cannot be read"),
        ({"config": ""}, "is the best so far, but its configuration was not stored"),
        ({"status": 4}, "has status timeout and value"),
    ],
)
def test_other_edits(suite, study, tmp_path, changes, words):
    from bbo_suite import Status

    folder = tmp_path / RUN.replace("annealing", "pick")
    rows = read_rows(folder)
    place = min(range(60), key=lambda i: rows[i].value)
    edit(folder, place, **(changes | ({"status": Status.TIMEOUT} if "status" in changes else {})))
    sample = 0 if "config" in changes else 60
    done = suite("validate", *study, "--sample", sample)
    assert done.code == 1 and any(words in line for line in failures(done)), done.out


def test_a_strategy_that_changed_since_is_named_as_the_reason(suite, tmp_path):
    before, after = (tmp_path / name / "draws.py" for name in ("before", "after"))
    source = "from bbo_suite import Strategy\nclass Draws(Strategy):\n    def ask(self, n):\n        return {}\n"
    for plugin, drawn in ((before, "n, self.rng)"), (after, "n + 1, self.rng)[1:]")):
        plugin.parent.mkdir()
        plugin.write_text(source.format(f"self.task.space.sample({drawn}"))
    run = ("--plugin", before, "--strategy", "draws", "--problem", "ordering/small-a", "--budget", 5, "--study", "d")
    assert suite("run", *run).code == 0
    done = suite("validate", "d", "--plugin", after)
    assert done.code == 1
    assert failures(done)[0].endswith(f"{DEPARTS_BECAUSE}; it was made with other code of strategy draws")


@pytest.mark.slow
def test_damage_is_found(suite, study, tmp_path):
    log = tmp_path / RUN / "rows.csv"
    whole = log.read_text()
    log.write_text(whole.replace(",ok,", ",no,", 1))
    assert "line 2 is damaged" in failures(suite("validate", *study))[0]
    log.write_text("".join(whole.splitlines(keepends=True)[:40]))
    assert "end.json counts 60 evaluations, but there are 39 rows" in failures(suite("validate", *study))[0]
    log.write_text(whole)
    head = log.with_name("run.json")
    written = json.loads(head.read_text())
    head.write_text(json.dumps(written | {"default": 6.0}))
    assert "its checksum does not match" in failures(suite("validate", *study))[0]
    stored = {key: fact for key, fact in written.items() if key != "check"}  # as in runs of before
    head.write_text(json.dumps(stored | {"default": 6.0}))
    assert "the default cost 6.0 and costs 5.0 now" in failures(suite("validate", *study))[0]
    head.write_text(json.dumps(stored | {"seed": 1}))
    found = " ".join(failures(suite("validate", *study)))
    assert "is not that of its run" in found and "the strategy now proposes another candidate" in found
    head.write_text(json.dumps(stored | {"seed": "0"}))
    assert "'seed' is '0', which it cannot be" in failures(suite("validate", *study))[0]
    head.write_text(json.dumps(stored))
    end = log.with_name("end.json")
    end.write_text("{")
    assert "end.json is not valid JSON" in failures(suite("validate", *study))[0]
    end.unlink()
    head.unlink()
    assert "rows but no run.json" in failures(suite("validate", *study))[0]


def test_a_run_that_was_planned_and_is_missing_is_named(suite, study, tmp_path):
    shutil.rmtree(tmp_path / RUN)
    done = suite("validate", *study)
    assert done.code == 0 and "1 could not be checked" in done.out
    assert "note annealing on toy/small, seed 0: there is no such run" in done.out


@pytest.mark.slow
def test_without_a_plan_every_strategy_is_expected_with_every_seed(suite, study, toy, tmp_path):
    suite("run", *toy, "--strategy", "pick", "--budget", 60, "--batch", 8, "--study", "s", "--repeats", 2, "--json")
    assert "there is no such run" not in suite("validate", *study).out
    (tmp_path / "results/s/planned.jsonl").unlink()
    assert "note annealing on toy/small, seed 1: there is no such run" in suite("validate", *study).out


def test_a_problem_or_a_strategy_that_is_not_there_is_not_checked(suite, study, toy, tmp_path):
    done = suite("validate", "s", *toy[:2], "--quiet")
    assert done.code == 0 and "note pick on toy/small, seed 0: proposals cannot be checked" in done.out
    done = suite("validate", "s", *toy[2:], "--quiet")
    assert done.code == 0 and done.out.count("there is no problem 'toy/small'") == 1
    changed = tmp_path / "toy.py"
    changed.write_text(toy[1].read_text() + "\n# another\n")
    assert suite("validate", "s", "--plugin", changed, *toy[2:], "--quiet").code == 0  # the class is the same
    changed.write_text(toy[1].read_text().replace("1.0 + ", "2.0 + "))
    done = suite("validate", "s", "--plugin", changed, *toy[2:], "--quiet")
    assert done.code == 0 and done.out.count("the problem has changed since") == 1


def test_what_ended_in_an_error_or_was_made_elsewhere_is_noted(suite, study, tmp_path):
    (tmp_path / RUN / "error.txt").write_text("Traceback\nValueError: no more\n")
    head = tmp_path / RUN / "run.json"
    stored = read_head(head.parent)
    stored["machine"]["cpu"], stored["versions"]["numpy"] = "Z80", "0.1"
    write_head(head.parent, stored)
    done = suite("validate", *study)
    assert done.code == 0
    for words in ("an error ended it: ValueError: no more", "made on another machine: Z80", "numpy 0.1, now "):
        assert words in done.out


def test_of_noisy_problems_only_the_best_speedup_is_compared(suite, tmp_path):
    plugin = ("--plugin", Path(__file__).parents[1] / "plugins" / "noisy.py")
    suite("run", *plugin, "--strategy", "random", "--budget", 60, "--study", "s", "--json")
    done = suite("validate", "s", *plugin, "--quiet")
    assert done.code == 0 and "only the best speedup was compared" in done.out
    folder = tmp_path / "results" / "s" / "noisy--a__random__0"
    rows = read_rows(folder)
    place = min(range(60), key=lambda i: rows[i].value)
    pairs = [Pair(number, place + 1, 10.0, 0.1, rows[place].config).line() for number in range(1, ROUNDS + 1)]
    header = (folder / REMEASURED).read_text().splitlines(keepends=True)[0]
    (folder / REMEASURED).write_text(header + "".join(pairs))
    (line,) = failures(suite("validate", "s", *plugin, "--quiet"))
    assert "the best speedup was 100.0000" in line
    (folder / REMEASURED).unlink()
    edit(folder, place, value=rows[place].value / 2)
    (line,) = failures(suite("validate", "s", *plugin, "--quiet"))
    assert "the best speedup was " in line


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "budget"), [("evolution", 150), pytest.param("mbo", 60, marks=pytest.mark.slow)])
def test_strategies_that_learn_are_replayed_exactly(suite, toy, strategy, budget):
    command = ("run", *toy, "--strategy", strategy, "--problem", "toy/large", "--budget", budget, "--batch", 16)
    suite(*command, "--study", "s", "--json")
    done = suite("validate", "s", *toy, "--sample", budget, "--quiet")
    assert done.code == 0 and done.out.count("holds") == 3


def test_imported_runs_are_not_asked_again(suite, study, toy):
    assert suite("export", "s", "--to", "csv", "--out", "all.csv").code == 0
    assert suite("import", "all.csv", "--study", "i", *toy).code == 0
    done = suite("validate", "i", *toy, "--quiet")
    assert done.code == 0 and "imported from all.csv: its proposals cannot be replayed" in done.out
    assert done.out.count("not checked") == 2 and done.out.count("holds") == 4
    assert "the same" in suite("best", "i", *toy).out


def test_a_table_without_candidates_has_a_best_that_nobody_can_paste(suite, toy, tmp_path):
    (tmp_path / "few.csv").write_text("evaluation,value\n1,4\n2,3.5\n")
    assert suite("import", "few.csv", "--study", "i", "--problem", "toy/small", *toy).code == 0
    done = suite("best", "i", *toy)
    assert (
        done.code == 0 and "no (its configuration was not stored)" in done.out and "configuration unknown" in done.out
    )
    done = suite("validate", "i", *toy, "--quiet")
    assert done.code == 0 and "the best candidate was not stored" in done.out


PROBLEM = """
import numpy as np
from bbo_suite import Evaluations, Parts, Problem, Space, Status

class Bags(Problem):
    instances = ("four",)

    def __init__(self, instance):
        self.space, self.default = Space([4] * 4), np.ones(4, int)

    def fingerprint(self):
        return "bags"

    def evaluate(self, configs):
        return self.evaluate_parts(configs)

    def evaluate_parts(self, configs):
        costs = configs.astype(float) ** 2 + 1
        costs[configs[:, 0] == 3, 0] = np.inf
        status = np.where(configs[:, 0] == 3, Status.COMPILE_ERROR, Status.OK).astype(np.int8)
        n, counts = len(configs), np.ones(configs.size)
        starts, keys = np.arange(0, 4 * n + 1, 4), (configs + 4 * np.arange(4)).astype(np.uint64)
        values = costs.sum(axis=1)
        costs[:, :2] += [[0.25, -0.25]] if SHIFTED else 0
        return Evaluations(values, status, parts=Parts(starts, keys.ravel(), counts, costs.ravel()))
"""
STRATEGY = """
import numpy as np
from bbo_suite import Level, Strategy

class Listener(Strategy):
    level = Level.PARTS
    heard = 0

    def ask(self, n):
        return np.random.default_rng(self.heard).integers(0, 4, (n, 4))

    def receive(self, told):
        parts = told.parts
        self.heard += int(parts.keys.sum()) + int(parts.costs[np.isfinite(parts.costs)].sum())
"""


@pytest.fixture(scope="module")
def plugins(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plugins")
    (folder / "bags.py").write_text(PROBLEM.replace("SHIFTED", "False"))
    (folder / "listener.py").write_text(STRATEGY)
    (folder / "new").mkdir()
    (folder / "new" / "bags.py").write_text(PROBLEM.replace("SHIFTED", "True"))
    return folder


@pytest.fixture(scope="module")
def made(plugins, tmp_path_factory):
    results, files = tmp_path_factory.mktemp("made"), [plugins / "bags.py", plugins / "listener.py"]
    bbo_suite.run("listener", "bags/four", budget=30, batch=7, study="s", results=results, plugins=files, quiet=True)
    return results


def verdict(results, *files):
    return next(iter(validate(Registry(files), "s", results, 10, lambda *_: None)))


@pytest.fixture
def copied(made, tmp_path):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path, next(tmp_path.rglob("parts.csv"))


def test_parts_of_a_sound_run_hold(made, plugins):
    found = verdict(made, plugins / "bags.py", plugins / "listener.py")
    assert (found.log, found.replayed, found.values) == (Finding.HOLDS,) * 3 and not found.complaints


@pytest.mark.parametrize("known", [True, False])
def test_damage_is_named_with_its_line_also_without_the_problem(copied, plugins, known):
    results, log = copied
    log.write_bytes(log.read_bytes().replace(b"\n12,", b"\n12,+0 ", 1))
    found = verdict(results, *([plugins / "bags.py", plugins / "listener.py"] if known else []))
    assert found.log is Finding.BROKEN and any("parts.csv, line 13 is damaged" in text for text in found.complaints)


def test_a_log_that_is_cut_or_gone_lacks_evaluations(copied, plugins):
    results, log = copied
    lines = log.read_bytes().splitlines(keepends=True)
    for kept, first in ((lines[:-3], 28), ([], 1)):
        log.write_bytes(b"".join(kept))
        found = verdict(results, plugins / "bags.py", plugins / "listener.py")
        assert f"lacks evaluation {first}" in found.complaints[0] and found.log is Finding.BROKEN
    log.unlink()
    assert "lacks evaluation 1" in verdict(results, plugins / "bags.py").complaints[0]


def test_parts_that_do_not_make_up_their_cost_are_named(copied, plugins):
    results, log = copied
    lines = log.read_text().splitlines(keepends=True)
    number, tokens, _ = lines[1].split(",")
    lines[1] = checksummed(f"{number},{tokens}1,")
    log.write_text("".join(lines))
    found = verdict(results, plugins / "bags.py")
    assert found.log is Finding.BROKEN and re.match(r"the parts of evaluation \d+ make ", found.complaints[0])


def test_parts_that_are_others_now_are_named_by_their_key(made, plugins):
    broken = plugins / "new" / "bags.py"
    found = verdict(made, broken, plugins / "listener.py")
    assert found.values is Finding.BROKEN and found.log is Finding.HOLDS
    assert any("of evaluation 1 was" in text and "and is" in text for text in found.complaints)


def folder(results, seed):
    return results / "s" / RunName("toy/small", "toy", seed).folder


def made_again(results, seeds=(0, 1, 2), **settings):
    for seed in seeds:
        perform(folder(results, seed), seed=seed, **settings)
    return results


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Return a folder of results with three runs, and the table of their digests."""
    results = made_again(tmp_path_factory.mktemp("first"))
    return results, export("s", "digests", results / "digests.csv", results, Registry())[0]


@pytest.fixture
def again(first, tmp_path):
    """Return a copy of the study."""
    shutil.copytree(first[0] / "s", tmp_path / "s")
    return tmp_path


def compared(results, table):
    return compare("s", results, read_digests(table), lambda number, words: None)


def edit_row(path, place, **changes):
    """Change fields of one row and write the checksum that fits."""
    rows = read_rows(path)
    rows[place] = dataclasses.replace(rows[place], **changes)
    (path / "rows.csv").write_text(HEADER + "".join(row.line() for row in rows))


def test_a_study_made_again_is_the_same_though_its_seconds_differ(first, tmp_path):
    results = made_again(tmp_path)
    for seed in (0, 1, 2):
        edit_row(folder(results, seed), 3, strategy_seconds=100.0)
    found = compared(results, first[1])
    assert found.holds and len(found.same) == found.compared == 3
    assert not (found.missing or found.extra or found.unfinished)


@pytest.mark.parametrize("changes", [{"value": 1e9}, {"digest": "0" * 16}])
def test_an_edited_row_is_another_run(first, again, changes):
    edit_row(folder(again, 1), 0, **changes)
    found = compared(again, first[1])
    assert not found.holds and list(found.different) == [RunName("toy/small", "toy", 1)] and len(found.same) == 2


@pytest.mark.parametrize("key", ["fingerprint", "budget", "batch", "options"])
def test_another_identity_is_another_run(first, again, key):
    run = open_run(folder(again, 0))
    other = dataclasses.replace(run, head=run.head | {key: {"fingerprint": "x", "options": {}}.get(key, 9)})
    assert RunDigest.of(other).digest != RunDigest.of(run).digest


def test_what_only_one_has_is_named_and_the_rest_compared(first, again):
    shutil.rmtree(folder(again, 0))
    (folder(again, 1) / "end.json").unlink()
    made_again(again, seeds=(7,))
    found = compared(again, first[1])
    assert found.holds and [name.seed for name in found.same] == [2]
    assert ([n.seed for n in found.missing], [n.seed for n in found.unfinished], [n.seed for n in found.extra]) == (
        [0],
        [1],
        [7],
    )
    shutil.rmtree(folder(again, 2))
    assert compared(again, first[1]).compared == 0 and not compared(again, first[1]).holds


def test_a_damaged_run_does_not_hold(first, again):
    log = folder(again, 1) / "rows.csv"
    log.write_text(log.read_text().replace(",ok,", ",no,", 1))
    found = compared(again, first[1])
    assert len(found.damaged) == 1 and "rows.csv, line" in found.damaged[0] and not found.holds


def test_unfinished_runs_are_left_out_of_the_table(again):
    (folder(again, 1) / "end.json").unlink()
    table, notes = export("s", "digests", None, again, Registry())
    assert [name.seed for name in read_digests(table)] == [0, 2]
    assert notes == ["left out: toy on toy/small, seed 1 is not complete"]


def test_a_table_gives_back_what_was_written(tmp_path):
    digests = [RunDigest("a,b\n\udcff", 'say "s"', 3, 10, float("inf"), "ab"), RunDigest("p", "s", 0, 1, 0.1, "cd")]
    write_digests(tmp_path / "t.csv", digests)
    assert list(read_digests(tmp_path / "t.csv").values()) == digests


@pytest.mark.parametrize("text", ["", "problem,strategy\n", "{}", "\0\n"])
def test_a_file_that_is_no_table_is_named(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(UserError, match=r"t.csv is not a table of digests"):
        read_digests(tmp_path / "t.csv")


@pytest.mark.parametrize("line", ["p,s,x,1,1.0,ab", "p,s,0", 'p,s,0,1,1.0,"ab'])
def test_a_damaged_table_is_named(tmp_path, line):
    write_digests(tmp_path / "t.csv", [])
    (tmp_path / "t.csv").write_text(f"{(tmp_path / 't.csv').read_text()}{line}\n")
    with pytest.raises(UserError, match=r"t.csv.* is damaged"):
        read_digests(tmp_path / "t.csv")


def test_the_command(suite, first, again):
    def ran():
        return suite("validate", "s", "--results", again, "--digests", first[1], "--quiet")

    assert (ran().code, ran().out) == (0, "3 of 3 published runs compared: all are the same\n")
    edit_row(folder(again, 2), 1, value=0.5)
    done = ran()
    assert done.code == 1 and done.out.startswith("FAIL toy on toy/small, seed 2: it differs from the published run")
    assert done.out.endswith("3 of 3 published runs compared: 1 differ\n")
    shutil.rmtree(folder(again, 2))
    done = ran()
    assert (done.code, done.out.splitlines()[0]) == (0, "note missing: toy on toy/small, seed 2")
    assert suite("validate", "s", "--results", again, "--digests", "nowhere.csv").err.startswith("error: cannot read")
    assert suite("import", first[1], "--study", "x").err.endswith("`validate STUDY --digests`\n")
