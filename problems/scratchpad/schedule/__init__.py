"""The contest's problem: groups of operations, their tiles, what stays in fast memory, and the order of tiles."""
