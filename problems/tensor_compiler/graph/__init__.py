"""Programs as arrays: operations, and the layouts in which each can work."""
