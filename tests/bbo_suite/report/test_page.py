"""The page: one file, nothing from elsewhere, and names that are only text."""

import base64
import hashlib
import os
import re
import zlib
from html.parser import HTMLParser

import numpy as np
import pytest

from bbo_suite import UserError
from bbo_suite.files.writing import replacing
from bbo_suite.report import write
from bbo_suite.report.compare import changed_settings, changes, p_values, rows_of
from bbo_suite.report.drawings import template

VOID = {"meta", "link", "input", "img"}
LIBRARY = "https://github.com/timmywil/panzoom"
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7*7 }}",
    "{% raw %}",
    "&lt;b&gt;",
    "</style>",
]


class Reader(HTMLParser):
    """Collects tags, attributes and text, and checks that tags are closed in order."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_hostile_names_are_text(studies):
    for name in HOSTILE:
        studies.add(studies.finals(f"p/{name}", x=[4, 5]) | {("p/a", name, 0): [8, np.inf]}, options={name: name})
    html = studies.html()
    page, plain = Reader(html), Reader(studies.add({("p/a", "x", 0): [8, 4]}, name="t").html("t"))
    assert page.tags.count("script") == 1 and "img" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert {*page.tags} <= {*plain.tags, "input"}
    text = "".join(page.text)
    assert all(text.count(name) >= 3 for name in HOSTILE)


def test_half_characters_and_other_scripts_are_written(studies):
    studies.add({("日本/語", "策略\udc80", 0): [8, 4]})
    text = write("s", studies.path).read_text(encoding="utf-8")
    assert "日本/語" in text and "策略\\udc80 is the only black-box strategy: mean speedup 2.0000" in text


@pytest.fixture(scope="module")
def drawn_page(tmp_path_factory, studies_in):
    """Return a page with all its figures."""
    studies = studies_in(tmp_path_factory.mktemp("drawn"))
    studies.add(studies.finals("p/a", x=[4, 5, 4], y=[5, 6, 5]) | studies.finals("p/b", x=[4, 5, 3], y=[5, 6, 7]))
    return studies.html()


@pytest.mark.slow
def test_nothing_comes_from_elsewhere(drawn_page):
    html, page = drawn_page, Reader(drawn_page)
    sources = [value for name, value in page.attributes if name in ("src", "href")]
    assert sources and all(source.startswith(("data:", "#")) for source in sources)
    drawings = unpacked(html)
    assert drawings and all(drawing.startswith("<svg ") for drawing in drawings)
    for text in (html.replace(LIBRARY, ""), *drawings):
        assert not re.search(r'https?://|@import|url\((?!#)|\ssrc="|href="(?!#|data:)', text)
    policy = next(value for _, value in page.attributes if "default-src 'none'" in str(value))
    script = re.search(r"<script>(.*?)</script>", html, re.DOTALL)[1]
    assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy
    anchors = {value for name, value in page.attributes if name == "id"}
    assert {source[1:] for source in sources if source.startswith("#")} <= anchors


def unpacked(html):
    """Return the drawings of a page."""
    return [zlib.decompress(base64.b64decode(packed)).decode() for packed in re.findall(r'data-packed="(.*?)"', html)]


@pytest.mark.slow
def test_ids_of_drawings_differ(drawn_page):
    drawings = unpacked(drawn_page)
    known = [set(re.findall(r'\bid="(.*?)"', drawing)) for drawing in drawings]
    assert len(known) > 3 and sum(map(len, known)) == len(set().union(*known))
    for ids, drawing in zip(known, drawings, strict=True):
        assert set(re.findall(r'(?:url\(|href=")#(.*?)[")]', drawing)) <= ids


@pytest.mark.slow
def test_a_report_of_60_runs_is_below_1_mb(studies, drawn):
    rng = np.random.default_rng(0)
    for problem in "abcde":
        walks = {(f"p/{problem}", f"strategy-{s}", i): 8 - np.cumsum(rng.random(1000) < 0.05) * 0.05 * rng.random(1000)
                 for s in range(6) for i in range(2)}  # fmt: skip
        studies.add({run: walk.tolist() for run, walk in walks.items()})
    html = studies.html()
    assert len(unpacked(html)) > 7 and len(html.encode()) < 1_000_000


def test_the_script_has_its_licence(studies):
    assert "Copyright Timmy Willison" in studies.add({("p/a", "x", 0): [8, 4]}).html()
    assert "Permission is hereby granted" in template("panzoom-MIT-License.txt")


def test_numbers_are_sorted_by_their_values(studies):
    studies.add({("p/a", "x", i): [8] * 1000 + [4] for i in range(2)} | {("p/a", "y", 0): [8] * 1001})
    keys = re.findall(r'data-key="([^"]*)">1,001<', studies.html())
    assert keys and {float(key) for key in keys} == {1001.0}


def test_a_full_disk_leaves_the_old_report(studies, full_disk):
    studies.add({("p/a", "x", 0): [8, 4]})
    path = write("s", studies.path)
    old, there = path.read_bytes(), sorted(path.parent.iterdir())
    with full_disk(1000), pytest.raises(UserError, match="cannot write"):
        write("s", studies.path)
    assert path.read_bytes() == old and sorted(path.parent.iterdir()) == there


def test_a_report_may_be_a_link_or_a_pipe(studies, tmp_path):
    studies.add({("p/a", "x", 0): [8, 4]})
    (tmp_path / "r.html").symlink_to(tmp_path / "real.html")
    write("s", studies.path, tmp_path / "r.html")
    assert (tmp_path / "r.html").is_symlink() and (tmp_path / "real.html").is_file()
    os.mkfifo(tmp_path / "pipe")
    with replacing(tmp_path / "pipe") as path:
        assert path == tmp_path / "pipe"
    assert path.is_fifo()


def test_the_command_prints_the_path(studies, suite, monkeypatch):
    studies.add({("p/a", "x", 0): [8, 4]}).add({("p/a", "x", 0): [8, 4]}, name="t")
    done = suite("report", "s", "--results", studies.path, "--out", "r.html", "--compare", "t")
    said = ["s against t: undecided", "x: undecided (no difference)", "r.html"]
    assert (done.code, done.out.splitlines(), done.err) == (0, said, "")
    assert "s compared with t" in (studies.path / "r.html").read_text()


def test_another_study_is_named_or_a_folder(studies, tmp_path):
    studies.add({("p/a", "x", 0): [8, 4]}).add({("p/a", "x", 0): [8, 5]}, name="t")
    for other in ("t", str(studies.path / "t")):
        assert "s compared with t" in write("s", studies.path, compare=other).read_text()
    with pytest.raises(UserError, match="neither in"):
        write("s", studies.path, compare="u")


def test_problems_that_differ_are_not_mixed(studies):
    runs = {(f"p/{name}", "x", 0): [8, 4] for name in "abc"}
    studies.add(runs).add({("p/c", "x", 0): [8, 4]}, name="t")
    studies.add({("p/a", "x", 0): [8, 4], ("p/b", "x", 0): [8, 4]}, name="t", fingerprint="f1")
    with pytest.raises(UserError, match="p/a and p/b are not the same"):
        write("s", studies.path, compare="t")
    studies.add({("q/a", "x", 0): [8, 4]}, name="u")
    with pytest.raises(UserError, match="no strategy on a problem in common"):
        write("s", studies.path, compare="u")


def test_a_study_compared_with_a_better_one(studies):
    for number in range(8):
        rng = np.random.default_rng(number)
        studies.add(studies.finals(f"p/{number}", x=4 + rng.random(5)))
        studies.add(studies.finals(f"p/{number}", x=2 + rng.random(5)), name="t", options={"heat": 9})
    ours, theirs = studies.data(), studies.data("t")
    rows = rows_of(ours, theirs)
    assert len(rows) == 8 and all(row.ours.mean() < row.theirs.mean() for row in rows)
    assert p_values(rows).min() > 0.05  # corrected for 8 rows, five runs each cannot be significant
    (change,) = changes(rows, np.random.default_rng(0))
    assert (change.strategy, change.problems, change.p, change.word) == ("x", 8, 1e-4, "worse")
    assert 0.5 < change.low < change.ratio < change.high < 0.7
    assert changed_settings(ours, theirs) == ["x"]
    compared = studies.page(other="t").compared
    assert len(compared.table.rows) == 8 and all(row[6].number < 0 for row in compared.table.rows)
    assert compared.verdicts[0] == "s against t: worse"


@pytest.mark.parametrize(
    ("old", "new", "said", "code"),
    [
        # 4 against 4 separate runs: p = 2 / C(8, 4) = .029, exactly; costs of 4 and 5 are speedups of 2 and 1.6
        ([4.0, 4.0, 4.0, 4.0], [5.0, 5.0, 5.0, 5.0], "x: worse by 25 % (p .029)", 1),
        ([5.0, 5.0, 5.0, 5.0], [4.0, 4.0, 4.0, 4.0], "x: better by 25 % (p .029)", 0),
        ([4.0, 4.1, 4.2, 4.3], [4.0, 4.1, 4.2, 4.3], "x: undecided (no difference)", 0),
        ([4.0, 4.0], [5.0, 5.0], "x: undecided (worse by 25 % in the mean, too few runs for a test)", 0),
        ([4.0], [5.0], "x: undecided (worse by 25 % in the mean, too few runs for a test)", 0),
        ([4.0, 4.0, 4.0, 4.0], [np.inf] * 4, "x: worse (p .029)", 1),
        # the mean is better and the ranks are worse: neither counts
        ([4.0] * 5, [1.0, 4.1, 4.1, 4.1, 4.1, 4.1, 4.1], "x: undecided (better by", 0),
    ],
)
def test_new_code_is_worse_better_or_undecided(studies, suite, old, new, said, code):
    for name, costs in (("s", new), ("t", old)):
        studies.add({("p/a", "x", i): [max(cost, 8.0), cost] for i, cost in enumerate(costs)}, name=name)
    done = suite("report", "s", "--results", studies.path, "--out", "r.html", "--compare", "t")
    first, second, path = done.out.splitlines()
    assert second.startswith(said) and done.code == code and path == "r.html"
    assert first == f"s against t: {said.split()[1]}"
    assert second.replace(" %", "\u00a0%") in (studies.path / "r.html").read_text()


@pytest.mark.slow
def test_the_page_shows_new_and_old_curves_in_one_figure(studies, drawn):
    studies.add(studies.finals("p/a", x=[4, 4], y=[2, 2])).add(studies.finals("p/a", x=[5, 5], y=[2, 2]), name="t")
    (drawing,) = studies.page(other="t").compared.drawings
    assert set(drawing.strategies) == {"x, s", "x, t", "y, s", "y, t"} and "dashed: the old one" in drawing.caption
