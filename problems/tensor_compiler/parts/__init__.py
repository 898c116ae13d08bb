"""What the tasks that decide layouts declare about the kernels and copies of a candidate."""
