"""What the author of a strategy or a problem reads: spaces, tasks, moves, and the two contracts."""
