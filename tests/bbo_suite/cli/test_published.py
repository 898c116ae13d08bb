"""`report` and `plot` of a published study, which is a table of runs."""

import pytest

TABLE = "problem,strategy,seed,level,default,best,evaluations,budget\n" + "".join(
    f"p/{p},{s},{seed},costs,8,{4 + p + seed},{budget},{budget}\n"
    for p in range(3) for s in "xy" for seed in range(2) for budget in (100, 1000)
)  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    (folder / "s").mkdir()
    (folder / "s" / "runs.csv").write_text(TABLE)
    return folder


@pytest.mark.slow
def test_a_budget_has_its_report_and_figures(results, suite):
    done = suite("report", "s-100", "--results", results)
    assert (done.code, done.out.strip()) == (0, str(results / "s" / "report-100.html"))
    done = suite("plot", "s-100", "--results", results, "--figure", "heat", "--format", "svg")
    assert (done.code, done.out.strip()) == (0, str(results / "s" / "figures-100" / "heat.svg"))


def test_several_budgets_are_not_one_study(results, suite):
    for command in ("report", "plot"):
        done = suite(command, "s", "--results", results)
        assert done.code and "s-100, s-1000" in done.err
