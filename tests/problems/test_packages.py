"""A compiler that is missing or too old gives one sentence with the command that installs it."""

from importlib.metadata import PackageNotFoundError

import pytest

from bbo_problems import packages
from bbo_suite import UserError
from bbo_suite.registry import Registry


@pytest.mark.parametrize(("found", "words"), [("0.8.5", "found 0.8.5"), (None, "found none")])
@pytest.mark.parametrize(
    ("problem", "package", "least"),
    [
        ("llvm/tree", "llvmlite", "0.49"),
        ("xla-passes/gpt2-l1", "jax", "0.10"),
        ("xla-passes/gpt2-l1", "jaxlib", "0.10"),
    ],
)
def test_a_package_that_is_missing_or_too_old_is_reported_with_the_command(
    monkeypatch, problem, package, least, found, words
):
    known = packages.version

    def version(name):
        if name != package:
            return known(name)
        if found is None:
            raise PackageNotFoundError(name)
        return found

    monkeypatch.setattr(packages, "version", version)
    remedy = f'run: pip install "{package}>={least}"'
    with pytest.raises(UserError, match=f"{package} {least} or newer.*{words}.*{remedy}"):
        Registry().load(problem)  # `bbo_suite.problem` may know it from another test


@pytest.mark.parametrize("version", ["0.10.2", "0.10.0.dev3", "0.10rc1", "1.0"])
def test_newer_versions_are_accepted_in_any_spelling(monkeypatch, version):
    monkeypatch.setattr(packages, "version", lambda name: version)
    assert packages.installed_version("jax", "0.10", "it") == version
