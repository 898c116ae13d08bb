"""Runs and studies on disk: the only place that writes and parses them.

`folders` names the files and finds runs; `identity` and `plan` say which run is which; `run_folder` writes. Rows have
three readers with the same columns: `rows` (exact, with checksums), `frames` (fast), `tail` (only what is new).
"""
