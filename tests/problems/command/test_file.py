"""The description of a build: a mistake names the file, the line and the key."""

import sys

import numpy as np
import pytest

import bbo_suite
from bbo_problems.command.file import read
from bbo_problems.command.ready import ready
from bbo_suite import Kind, UserError
from bbo_suite.registry import Registry

GOOD = """[build]
command = "cc {flags} {order} -o {out} a.c"

[run]
command = "{out} {input}"
inputs = ["a b.txt", "c.txt"]

[space]
level = ["-O2", "-O3"]
"-fast" = "switch"
"--param=n" = {scale = [1, 10, 100], default = 10}
width = {choice = [4, 8], text = "-mwidth {}", when = {level = "-O3"}}
order = {order = ["-a", "-b", "-c"]}
"""


@pytest.fixture
def described(tmp_path):
    def write(text):
        (tmp_path / "tune.toml").write_text(text)
        (tmp_path / "a.c").write_text("")
        return Registry().load(f"command:{tmp_path / 'tune.toml'}")

    return write


def test_each_kind_of_parameter_puts_its_text_where_it_belongs(described):
    problem = described(GOOD)
    assert problem.space.kinds.tolist() == [Kind.CHOICE] * 2 + [Kind.SCALE, Kind.CHOICE] + [Kind.SLOT] * 3
    default = problem.default_row()
    assert dict(problem.values(default)) == {"flags": "-O2 --param=n=10", "order": "-a -b -c"}
    other = np.array([1, 1, 2, 1, 2, 0, 1])
    assert dict(problem.values(other)) == {"flags": "-O3 -fast --param=n=100 -mwidth 8", "order": "-c -a -b"}
    other[0] = 0
    assert "-mwidth" not in problem.flags(other)
    assert problem.paste(default) == "cc -O2 --param=n=10 -a -b -c -o {out} a.c"


def test_what_depends_on_a_setting_that_is_left_out_is_left_out(described):
    problem = described(GOOD + 'depth = {choice = [1, 2], text = "-depth {}", when = {width = 8}}\n')
    config = np.array([1, 0, 0, 1, 0, 1, 2, 1])
    assert problem.flags(config) == "-O3 --param=n=1 -mwidth 8 -depth 2"
    config[0] = 0
    assert problem.flags(config) == "-O2 --param=n=1"


def test_inputs_are_runs_and_a_space_in_a_name_is_quoted(described):
    assert described(GOOD).build.runs == ("{out} 'a b.txt'", "{out} c.txt")
    inside = GOOD.replace('"{out} {input}"', '"""{out} "{input}" it\'s-{input}\'"""')
    assert described(inside).build.runs[0] == """{out} "a b.txt" it's-a b.txt'"""


def test_an_editors_mark_before_the_text_is_no_text(described):
    assert described("\ufeff" + GOOD).build.runs


def test_what_is_pasted_has_the_lines_and_blanks_that_matter_and_the_run_if_it_takes_values(described):
    two_lines = GOOD.replace('"cc {flags} {order} -o {out} a.c"', "'''cc {flags} -c -D'A  B'\ncc {order} -o {out}'''")
    problem = described(two_lines)
    assert problem.paste(problem.default_row()) == "cc -O2 --param=n=10 -c -D'A  B'\ncc -a -b -c -o {out}"
    problem = described(GOOD.replace(" {order}", "").replace("{out} {input}", "{out} {order} {input}"))
    assert problem.paste(problem.default_row()) == "cc -O2 --param=n=10 -o {out} a.c\n{out} -a -b -c 'a b.txt'"


def test_what_is_built_decides_the_content_and_comments_and_stored_studies_do_not(described, tmp_path):
    first = described(GOOD).fingerprint()
    for name in ("results/mine/study.json", ".git/config"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("{}")
    assert described("# a comment\n" + GOOD).fingerprint() == first
    (tmp_path / "b.h").write_text("int x;")
    assert described(GOOD).fingerprint() != first


MISTAKES = [
    ("[build]", "[bild]", 1, "[bild]", "Did you mean 'build'"),
    ('command = "cc', 'comand = "cc', 2, "[build] comand", "Did you mean 'command'"),
    ('"cc {flags}', "5 #", 2, "[build] command", "must be a text"),
    ("{flags} {order} -o", "'{flags} {order} -o", 2, "[build] command", "No closing quotation"),
    ('inputs = ["a b.txt", "c.txt"]', "", 5, "[run] command", "say which"),
    (" {input}", "", 6, "[run] inputs", "no place {input}"),
    ('["a b.txt", "c.txt"]', "[1]", 6, "[run] inputs", "a list of texts"),
    ("[run]", "[cost]\ngoal = 'total'\n[run]", 5, "[cost] goal", "one group"),
    ("[run]", "[cost]\ngoal = '(total'\n[run]", 5, "[cost] goal", "no regular expression"),
    ("[run]", "[cost]\nclock = 'sun'\n[run]", 5, "[cost] clock", '"cpu" or "wall"'),
    ("[run]", "[run]\nseconds = -1", 5, "[run] seconds", "a number above 0"),
    ('= "switch"', '= "swich"', 10, "[space] -fast", 'write "switch"'),
    ('["-O2", "-O3"]', '["-O2"]', 9, "[space] level", "two or more"),
    ('["-O2", "-O3"]', '["-O2", "-O2"]', 9, "[space] level", "twice"),
    ("[1, 10, 100]", "[10, 1, 100]", 11, "[space] --param=n", "sort them"),
    ("default = 10", "default = 11", 11, "[space] --param=n", "none of its values"),
    ("default = 10", "defalt = 10", 11, "[space] --param=n", "'defalt'"),
    ('"-mwidth {}"', '"-mwidth"', 12, "[space] width", "{}"),
    ('{level = "-O3"}', '{level = "-O1"}', 12, "[space] width", "no choice"),
    ('{level = "-O3"}', '{levl = "-O3"}', 12, "[space] width", "no choice"),
    ("[space]\n", "[space]\nready = 'gccc'\n", 9, "[space] ready", "Did you mean 'gcc'"),
    ("{flags} {order}", "", 2, "[build] command", "no place {flags}"),
    ("{flags} ", "", 9, "[space] level", "would change nothing: there is no place {flags} or {level}"),
    ("[run]", "[run]\nseconds = inf", 5, "[run] seconds", "at most 1,000,000"),
    ("[run]", "[run]\nenvironment = {'A=B' = ''}", 5, "[run] environment", "'A=B'"),
    ('"{out} {input}"', '" "', 5, "[run] command", "blank"),
    ("[run]", "[check]\noutput = -1\n[run]", 5, "[check] output", "0 or more"),
    ("[run]", "[check]\noutput = nan\n[run]", 5, "[check] output", "0 or more"),
    ("[run]", "[check]\noutput = ''\n[run]", 5, "[check] output", "blank"),
    ("[run]", "[check]\noutput = '\"'\n[run]", 5, "[check] output", "No closing quotation"),
    ("[run]", "folder = 'none'\n[run]", 4, "[build] folder", "no folder"),
    ("[run]", "files = ['none']\n[run]", 4, "[build] files", "no such file"),
    ("[run]", "files = ['../a.c']\n[run]", 4, "[build] files", "not inside"),
    ("[run]", "files = ['/']\n[run]", 4, "[build] files", "not inside"),
    ("[run]", "files = ['a**']\n[run]", 4, "[build] files", "no pattern"),
    ("[space]\n", "[space]\nready = 1\n", 9, "[space] ready", "names no space"),
    ("[space]\n", "[space]\nstart = [1, 2]\n", 9, "[space] start", "another name"),
    ("[space]\n", "[space]\nout = [1, 2]\n", 8, "[space]", "'out' cannot be the name"),
    ("[space]\n", '[space]\n"a\\nb" = [1, 2]\n', 8, "[space]", r"'a\nb' cannot be the name"),
    ('{level = "-O3"}', '{order = "-a"}', 12, "[space] width", "an order"),
    ('{level = "-O3"}', "{width = 8}", 12, "[space] width", "depends on itself: width <- width"),
]


@pytest.mark.parametrize(("old", "new", "line", "key", "words"), MISTAKES)
def test_a_mistake_names_the_line_and_the_key(tmp_path, old, new, line, key, words):
    assert old in GOOD
    file = tmp_path / "tune.toml"
    file.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(UserError) as error:
        read(file)
    assert str(error.value).startswith(f"{file}, line {line}: {key} ") and words in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[build\n", "is not TOML: .*line 1"),
        ("", "command is missing"),
        ("[build]\ncommand = 'cc {flags} -o {out}'\n[space]\na = ['x', 'y']", 'only goal = "size" needs none'),
        ("[run]\ncommand = 'x {flags}'", "ready is missing"),
        ("[run]\ncommand = 'x {flags}'\n[cost]\ngoal = 'size'\n[space]\na = ['x', 'y']", "no .build. command"),
        ("[cost]\ngoal='size'\n[build]\ncommand='x {flags}'\n[space]\na=['x', 'y']", "no place {out}, whose size"),
    ],
)
def test_what_is_missing_is_named(tmp_path, text, words):
    (tmp_path / "tune.toml").write_text(text)
    with pytest.raises(UserError, match=words):
        read(tmp_path / "tune.toml")


@pytest.mark.slow
def test_options_for_a_gpu_need_none_to_be_listed():
    entries, _ = ready("xla-gpu", "", f"{sys.executable} step.py", "time")
    texts = {parameter.name: (values, place) for parameter, values, place in entries}
    assert texts["--xla_gpu_enable_triton_gemm"] == (("", "--xla_gpu_enable_triton_gemm=false"), 0)
    assert len(texts) > 30 and all(values[place] == "" for values, place in texts.values())


@pytest.mark.slow
def test_xlas_options_are_those_that_jaxlib_knows(tmp_path):
    (tmp_path / "tune.toml").write_text(
        f'[run]\ncommand = "{sys.executable} step.py"\nenvironment = {{XLA_FLAGS = "{{flags}}"}}\n'
        '[cost]\ngoal = "step: (.+)"\n[space]\nready = "xla-cpu"\n'
    )
    (tmp_path / "step.py").touch()
    problem = bbo_suite.problem(f"command:{tmp_path / 'tune.toml'}")
    names = [each.parameter.name for each in problem.build.settings]
    row = problem.default_row()
    assert problem.flags(row) == "" and "--xla_cpu_prefer_vector_width" in names and len(names) >= 10
    place = names.index("--xla_backend_optimization_level")
    row[place] = 0
    assert problem.flags(row) == "--xla_backend_optimization_level=0"
    bare = tmp_path / "python3"
    bare.write_text("#!/bin/sh\nexit 1\n")
    bare.chmod(0o755)
    with pytest.raises(UserError, match="has jax"):
        ready("xla-cpu", "", f"{bare} step.py", "time")
