"""What a user without a permission is told. Root may read everything, so a child process gives its rights up."""

import os
import re
import shutil
import tempfile
import traceback
from pathlib import Path

import pytest
from bbo_toys import perform

from bbo_suite import Problem, Study, UserError, load
from bbo_suite.store.folders import has_begun, run_folders
from bbo_suite.store.stored_run import readable

NOBODY = 65534

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another")


@pytest.fixture
def study():
    """Yield a folder with a study of two runs that everybody may read: pytest's own folders are for their user only."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder)
        results.chmod(0o755)
        for seed in (0, 1):
            perform(results / "s" / f"run{seed}", seed=seed, budget=20)
        assert len(load("s", results)) == 40 and len(Study("s", results)) == 2  # imports what the child may not read
        yield results


def as_nobody(check):
    """Call a function in a child process that has no rights."""
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            check()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("hidden", ["", "run.json", "rows.csv"])
def test_a_run_that_may_not_be_read_is_named_and_left_out(study, hidden, capsys):
    (study / "s" / "run0" / hidden).chmod(0)
    why = rf"cannot read .*run0/{hidden or 'run.json'}: Permission denied"

    def check():
        assert has_begun(study / "s" / "run0") and len(run_folders("s", study)) == 2
        assert load("s", study)["seed"].unique().tolist() == [1]
        assert [run["seed"] for run in Study("s", study)] == [1]
        assert [run.head["seed"] for run in readable(run_folders("s", study))] == [1]
        assert len(re.findall(f"left out: {why}", capsys.readouterr().err)) == 3 - (not hidden)

    as_nobody(check)


def test_a_study_that_may_not_be_read_is_named(study):
    (study / "s").chmod(0)

    def check():
        with pytest.raises(UserError, match=r"cannot read .*/s: Permission denied"):
            load("s", study)

    as_nobody(check)


def test_a_run_whose_permission_is_lost_while_it_goes_on_keeps_its_rows(study, monkeypatch):
    shutil.rmtree(study / "s")
    study.chmod(0o777)
    monkeypatch.setattr(Problem, "fingerprint", lambda toy: "0" * 16)  # the child may not read the toys' file

    def check():
        def stopped():
            if (study / "s" / "run" / "rows.csv").stat().st_size > 500:
                (study / "s" / "run").chmod(0o500)
            return False

        with pytest.raises(UserError, match=r"cannot write .*/run: Permission denied; fix this, then run the same"):
            perform(study / "s" / "run", stopped=stopped)
        (study / "s" / "run").chmod(0o700)
        assert perform(study / "s" / "run")

    as_nobody(check)
