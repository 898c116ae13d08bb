"""Running a study: its plan, the loop of a run, processes, clusters, Ctrl-C."""
