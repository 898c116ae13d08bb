"""For authors of strategies and problems: spaces, tasks, moves, and the contracts of both."""
