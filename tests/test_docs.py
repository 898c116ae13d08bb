"""What README and the documentation print works, as a new user would type it."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = {page.stem: page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}
PLUGINS = {
    "hillclimb": ("README", "python strategy"),
    "queens": ("add-a-problem", "python problem"),
    "knapsack": ("add-a-problem", "python knapsack"),
    "restarts": ("add-a-strategy", "python options"),
    "nearby": ("knowledge", "python costs"),
    "shortest": ("knowledge", "python compiling"),
    "neighbours": ("knowledge", "python structure"),
    "summing": ("knowledge", "python parts"),
    "mytuner": ("tutorial", "python tuner"),
}
"""Files that pages tell the reader to write: the page, and what the fence of the block says."""
LONGEST_README, LONGEST_PLUGIN, LARGEST_PICTURE = 166, 50, 200_000


def blocks(page: str, fence: str) -> list[str]:
    """Return the code blocks of a page whose fence says ```<fence>."""
    return re.findall(rf"^```{fence}\n(.*?)^```", PAGES[page].read_text(), re.DOTALL | re.MULTILINE)


def first_stage(names: list[str]) -> list[object]:
    """Return cases of which the first plugin is tested with all tests, and the others with the slow ones."""
    return [name if name == "hillclimb" else pytest.param(name, marks=pytest.mark.slow) for name in names]


def printed_commands() -> list[str]:
    """Return every printed command of the suite, without the comment behind it."""
    text = "\n".join(page.read_text() for page in PAGES.values())
    return sorted(
        set(re.findall(r"^python -m bbo_suite ([a-z].+?)(?: +#.*| +&&.*)?$", text.replace("\\\n", ""), re.MULTILINE))
    )


def suite(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "bbo_suite", *arguments]
    return subprocess.run(command, cwd=folder, env=os.environ | environment, capture_output=True, text=True)


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """Return a folder with every plugin that the pages print."""
    for name, place in PLUGINS.items():
        (tmp_path / f"{name}.py").write_text(blocks(*place)[0])
    return tmp_path


def test_readme_is_short_and_begins_with_a_picture() -> None:
    text = PAGES["README"].read_text()
    assert len(text.splitlines()) <= LONGEST_README
    picture = re.search(r"^!\[.+\]\((.+)\)$", text.partition("\n## ")[0], re.MULTILINE)
    assert (ROOT / picture[1]).stat().st_size <= LARGEST_PICTURE


def test_tables_of_readme_are_what_the_classes_say() -> None:
    from bbo_suite.cli.catalogue import overview
    from bbo_suite.registry import Registry

    wanted = overview(Registry()).split("\n\n")
    for table in wanted:
        assert table in PAGES["README"].read_text(), "take the tables of `python -m bbo_suite list --markdown`"
    assert len(wanted) == 2


@pytest.mark.parametrize("page", first_stage([page for page in PAGES if blocks(page, "python")]))
def test_python_of_a_page_runs(plugins: Path, page: str) -> None:
    """The blocks of a page are one script; the plugins that the pages print are in the same folder."""
    (plugins / "page.py").write_text("\n".join(blocks(page, "python")))
    done = subprocess.run([sys.executable, "page.py"], cwd=plugins, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("line", printed_commands())
def test_printed_command_parses(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command and its options exist, and values have the right type; what it does is tested elsewhere."""
    from typer.main import get_command

    from bbo_suite.cli import app

    monkeypatch.chdir(tmp_path)
    words = shlex.split(line)
    get_command(app).commands[words[0]].make_context(words[0], words[1:], resilient_parsing=False)


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES.values():
        prose = re.sub(r"^```.*?^```|`[^`]*`", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose):
            built = page.parent.name == "docs" and link.startswith("examples/")
            assert built or (page.parent / link).exists(), f"{page.name} links to {link}"


@pytest.mark.parametrize("name", first_stage(list(PLUGINS)))
def test_plugins_are_short_and_conform(plugins: Path, name: str) -> None:
    assert len((plugins / f"{name}.py").read_text().splitlines()) < LONGEST_PLUGIN
    done = suite(plugins, "check", f"{name}.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok" in done.stdout


@pytest.mark.slow
def test_plugins_run_from_files(plugins: Path) -> None:
    given = ["--plugin", "hillclimb.py", "--plugin", "queens.py", "--problem", "queens/8", "--budget", "500", "--json"]
    done = suite(plugins, "run", *given, "--strategy", "hillclimb", "--strategy", "evolution")
    assert done.returncode == 0, done.stderr
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    assert [run["strategy"] for run in runs] == ["hillclimb", "evolution"]
    assert all(run["best"] < run["default"] for run in runs)
    assert runs[1]["best"] == runs[1]["optimum"] == 1.0


@pytest.mark.slow
def test_a_policy_of_a_page_runs(tmp_path: Path) -> None:
    (tmp_path / "lightest.py").write_text(blocks("fleet", "python policy")[0])
    given = ["--plugin", "lightest.py", "--policy", "lightest", "--policy", "weight", "--json"]
    done = suite(tmp_path, "fleet", *given)
    assert done.returncode == 0, done.stderr
    lightest, weight = (json.loads(line) for line in done.stdout.splitlines())
    assert lightest["policy"] == "lightest" and 0 < lightest["saved"] < weight["saved"]


@pytest.mark.slow
def test_plugins_run_from_an_installed_package(plugins: Path) -> None:
    package = plugins / "my_package"
    package.mkdir()
    (package / "__init__.py").touch()
    for name in ("hillclimb", "queens"):
        (plugins / f"{name}.py").rename(package / f"{name}.py")
    head = '[project]\nname = "my_package"\nversion = "1"\n\n[tool.setuptools]\npackages = ["my_package"]\n\n'
    (plugins / "pyproject.toml").write_text(head + blocks("add-a-strategy", "toml entry-points")[0])
    place = plugins / "installed"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target", str(place)]
    subprocess.run([*pip, str(plugins)], check=True, capture_output=True)
    listed = suite(plugins / "installed", "list", "--json", PYTHONPATH=str(place))
    known = {item["id"] for item in json.loads(listed.stdout)}
    assert {"hillclimb", "queens/8", "annealing", "fusion/resnet50"} <= known
    given = ["--strategy", "hillclimb", "--problem", "queens/8", "--budget", "200", "--json"]
    done = suite(plugins / "installed", "run", *given, PYTHONPATH=str(place))
    assert json.loads(done.stdout)["evaluations"] == 200, done.stderr
