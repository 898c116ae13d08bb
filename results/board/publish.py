"""Collect all runs of the board, ours and submitted ones, in the file that `score` ranks against."""

from pathlib import Path

import pandas as pd

from bbo_suite.board import score_file
from bbo_suite.board.reference import KEPT, PUBLISHED, reference_list
from bbo_suite.store.run_table import read_runs, run_tables


def main() -> None:
    """Write the table of the runs on the reference list."""
    listed = reference_list()
    tables = run_tables(Path(__file__).parent)
    submitted = [table for table in tables if table.name.endswith(score_file.END)]  # these are checked line by line
    own = [read_runs(table) for table in tables if table not in submitted]
    runs = pd.concat([*own, *(score_file.read(table, listed) for table in submitted)])
    on_it = [listed.task(*row) is not None for row in runs[["problem", "fingerprint"]].itertuples(index=False)]
    kept = runs[pd.Series(on_it, runs.index) & runs["budget"].isin(listed.budgets)][KEPT]
    packed = {"method": "gzip", "mtime": 0}
    kept.sort_values(KEPT).to_csv(PUBLISHED, index=False, float_format="%.10g", compression=packed)


if __name__ == "__main__":
    main()
