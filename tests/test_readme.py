"""The README's examples run as printed, as a new user would run them."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def block(kind: str) -> str:
    """Return the code block whose fence says ```<kind>."""
    return re.search(rf"^```{kind}\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)[1]


def suite(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "bbo_suite", *arguments]
    return subprocess.run(command, cwd=folder, env=os.environ | environment, capture_output=True, text=True)


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    (tmp_path / "hillclimb.py").write_text(block("python strategy"))
    (tmp_path / "queens.py").write_text(block("python problem"))
    return tmp_path


@pytest.mark.parametrize("name", ["hillclimb", "queens"])
def test_examples_are_about_twenty_lines_and_conform(plugins: Path, name: str) -> None:
    assert len((plugins / f"{name}.py").read_text().splitlines()) < 30
    done = suite(plugins, "check", f"{name}.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok" in done.stdout


def test_examples_run_as_plugins(plugins: Path) -> None:
    given = ["--plugin", "hillclimb.py", "--plugin", "queens.py", "--problem", "queens/8", "--budget", "500", "--json"]
    done = suite(plugins, "run", *given, "--strategy", "hillclimb", "--strategy", "evolution")
    assert done.returncode == 0, done.stderr
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    assert [run["strategy"] for run in runs] == ["hillclimb", "evolution"]
    assert all(run["best"] < run["default"] for run in runs)
    assert runs[1]["best"] == runs[1]["optimum"] == 1.0


def test_examples_run_by_entry_points(plugins: Path) -> None:
    package = plugins / "my_package"
    package.mkdir()
    (package / "__init__.py").touch()
    for name in ("hillclimb", "queens"):
        (plugins / f"{name}.py").rename(package / f"{name}.py")
    head = '[project]\nname = "my_package"\nversion = "1"\n\n[tool.setuptools]\npackages = ["my_package"]\n\n'
    (plugins / "pyproject.toml").write_text(head + block("toml entry-points"))
    place = plugins / "installed"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target", str(place)]
    subprocess.run([*pip, str(plugins)], check=True, capture_output=True)
    listed = suite(plugins / "installed", "list", "--json", PYTHONPATH=str(place))
    assert {"hillclimb", "queens/8", "annealing", "fusion/resnet50"} <= {
        item["id"] for item in json.loads(listed.stdout)
    }
    given = ["--strategy", "hillclimb", "--problem", "queens/8", "--budget", "200", "--json"]
    done = suite(plugins / "installed", "run", *given, PYTHONPATH=str(place))
    assert json.loads(done.stdout)["evaluations"] == 200, done.stderr


def test_the_python_example_runs(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", block("python")], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "annealing" in done.stdout


@pytest.mark.parametrize(
    "line",
    re.findall(
        r"^    python -m bbo_suite ((?:list|show|plot|plan|watch|run|tune-strategy).*?)(?: +#.*)?$",
        README.read_text(),
        re.MULTILINE,
    ),
)
def test_every_command_is_understood(line: str, tmp_path: Path) -> None:
    """Every printed command line parses; what it does is tested elsewhere."""
    from typer.main import get_command

    from bbo_suite.cli import app

    words = shlex.split(line)
    command = get_command(app).commands[words[0]]
    command.make_context(words[0], words[1:], resilient_parsing=False)
