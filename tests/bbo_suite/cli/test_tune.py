"""`tune` and `confirm` on a script whose speed its arguments set: what is printed, stored, resumed, and refused."""

import json
import shutil

import pytest

WORK = """n=3000
for word in "$@"; do
  case $word in -fast) n=$((n-1500));; -faster) n=$((n-1000));; -slow) n=$((n+4000));; -wrong) echo wrong;; esac
done
i=0; while [ $i -lt $n ]; do i=$((i+1)); done
echo done
"""
SPACE = """[space]
"-fast" = "switch"
"-faster" = "switch"
"-slow" = "switch"
"-wrong" = "switch"
"-unused" = "switch"
"""
SWITCHES = {"-fast", "-faster", "-slow", "-wrong", "-unused"}
TUNE = ("tune", "--run", "sh work.sh {flags}", "--space", "space.toml", "--budget", 30, "--study", "mine", "--quiet")


@pytest.fixture
def work(tmp_path):
    (tmp_path / "work.sh").write_text(WORK)
    (tmp_path / "space.toml").write_text(SPACE)
    return tmp_path


@pytest.mark.slow
def test_what_helps_is_found_named_stored_and_confirmed(suite, work):
    done = suite(*TUNE[:-1])
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert "sh work.sh -fast -faster" in lines and "auto: mbo" in done.err
    assert "comparing what is left with the default" in done.err
    assert any(line.startswith("against the default: faster by ") for line in lines)
    assert {line.split()[2].rstrip(":") for line in lines if line.endswith(": off -> on")} == {"-fast", "-faster"}
    assert "compared with the default's: 5 characters of output" in done.out
    stored = json.loads((work / "results/mine/recommended.json").read_text())
    assert stored["text"] == "sh work.sh -fast -faster"
    again = suite("confirm", "mine", "--seconds", 5)
    assert (again.code, again.out.split(" by ")[0]) == (0, "against the default: faster")
    (work / "other.toml").write_text(f'[run]\ncommand = "sh work.sh {{flags}} and more"\n{SPACE}')
    other = suite("confirm", "mine", "--on", "command:other.toml", "--seconds", 5, "--json")
    assert other.code == 0 and json.loads(other.out)["better"] is True
    assert suite("confirm", "mine", "--on", "toy/small").code == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("new", "old", "code", "words"),
    [
        ("sh work.sh -fast", "sh work.sh", 0, "faster by"),
        pytest.param("sh work.sh", "sh work.sh -fast", 1, "slower by", marks=pytest.mark.slow),
        ("sh work.sh -wrong", "sh work.sh", 1, "FAILS: wrong_result"),
    ],
)
def test_a_claim_of_somebody_else_is_judged(suite, work, new, old, code, words):
    done = suite("confirm", "--command", new, "--against", old, "--seconds", 2)
    assert done.code == code and f"against the default: {words}" in done.out, done


@pytest.mark.slow
def test_no_gain_is_claimed_between_equal_commands(suite, work):
    equal = ("confirm", "--command", "sh work.sh x", "--against", "sh work.sh y", "--seconds", 2)
    found = [suite(*equal) for _ in range(5)]  # an interval of 95 % is wrong once in twenty times
    assert sum((done.code, "against the default: not shown (" in done.out) == (1, True) for done in found) >= 3


@pytest.mark.slow
def test_two_builds_are_compared_by_size(suite, work):
    for name, size in (("a", 100), ("b", 120)):
        (work / name).write_bytes(b"x" * size)
    done = suite("confirm", "--command", "cp a {out}", "--against", "cp b {out}", "--goal", "size")
    assert (done.code, done.out) == (0, "against the default: smaller by 16.67 %\n")


@pytest.mark.slow
def test_a_folder_of_any_name_names_the_study(suite, tmp_path, monkeypatch):
    folder = tmp_path / "my prögram"
    folder.mkdir()
    (folder / "a").write_bytes(b"x" * 100)
    (folder / "space.toml").write_text("[space]\nbytes = ['', 'yy']\n")
    monkeypatch.chdir(folder)
    build = "sh -c 'cp a {out}; printf %s {bytes} >> {out}'"
    done = suite("tune", build, "--goal", "size", "--space", "space.toml", "--budget", "2", "--quiet")
    assert done.code == 0 and [path.name[:15] for path in folder.glob("results/*")] == ["tune-my-pr-gram"], done


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_a_search_begins_with_optimisation_at_link_time_where_that_is_better(suite, work):
    (work / "a.c").write_text("int unused(int x) { return x / 3 + x / 5 + x / 7; }\nint main(void) { return 0; }\n")
    build = ("gcc {flags} -o {out} a.c", "--goal", "size", "--study", "lto", "--budget", 3)
    done = suite("tune", *build, "--strategy", "random", "--json")
    assert done.code == 0 and "the search begins at -Oz -flto, the best level" in done.err, done
    found = json.loads(done.out)
    assert found["value"] == found["default"] and found["baselines"]["-Oz"] < 1
    assert suite("tune", *build, "--strategy", "random").code == 0  # the same start again
    assert (work / "results/lto/tune.toml").read_text().endswith('start = "-Oz -flto"\n')


MISTAKES = [
    (("tune", "--run", "sh work.sh"), "ready is missing"),
    (("tune", "cp work.sh {out}"), "only goal"),
    (("tune", "--run", "sh work.sh {flags}", "--space", "none.toml"), "cannot read the space none.toml"),
    (("tune", "--run", "sh work.sh {flags}", "--space", "work.toml"), "no table [space]"),
    (("tune", "--run", "sh work.sh {flags}", "--space", "gccc"), "Did you mean 'gcc'"),
    (("tune", "--run", "sh work.sh {flags}", "--space", "late.toml"), "late.toml: write [space] as its last table"),
    (("tune", "--run", "sh work.sh {flags}", "--space", "sub.toml"), "sub.toml: write [space] as its last table"),
    (("tune", "--run", "sh work.sh {flags}", "--space", "odd.toml"), "cannot read the space odd.toml"),
    (("tune", "--run", "sh work.sh {flags}", "--space", "space.toml", "--check", "nan"), "nan cannot be started"),
    (("tune", "--run", "sh work.sh {flags}", "--space", "space.toml", "--check=-1"), "a tolerance is 0 or more"),
    (("confirm", "--command", "a", "--against", "a"), "are the same command"),
    (("tune", "--run", "sh nowhere.sh {flags}", "--space", "space.toml"), "the run ended with exit code"),
    ((*TUNE, "--strategy", "evolutoin"), "Did you mean 'evolution'"),
    (("confirm",), "name a study"),
    (("confirm", "mine", "--seconds", "0"), "--seconds must be above 0, not 0"),
    (("confirm", "mine", "--seconds", "-1m"), "--seconds must be above 0, not -60"),
    (("confirm", "mine", "--command", "a", "--against", "b"), "name a study"),
    (("confirm", "--command", "a"), "name a study"),
    (("confirm", "mine"), "there is no study 'mine'"),
]


@pytest.mark.parametrize(("arguments", "words"), MISTAKES)
def test_a_mistake_is_one_sentence_and_leaves_no_study(suite, work, arguments, words):
    (work / "work.toml").write_text("[run]\n")
    (work / "late.toml").write_text("[space]\na = [1, 2]\n[run]\ncommand = 'x'\n")
    (work / "sub.toml").write_text("[space.a]\nchoice = [1, 2]\n")
    (work / "odd.toml").write_text("[space\n")
    done = suite(*arguments)
    lines = [line for line in done.err.splitlines() if not line.startswith(("loading", "evaluating"))]
    assert done.code == 1 and done.out == "" and len(lines) == 1, done
    assert lines[0].startswith("error: ") and words in lines[0]
    assert not any((work / "results").glob("*"))


@pytest.mark.slow
def test_another_build_does_not_continue_a_study(suite, work):
    assert suite(*TUNE[:6], 4, *TUNE[7:]).code == 0
    refused = suite("tune", "--run", "sh work.sh {flags} other", *TUNE[3:])
    assert refused.code == 1 and "another build or goal" in refused.err
