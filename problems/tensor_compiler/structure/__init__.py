"""What the tasks declare about themselves: graphs, interactions and features, and the parts of a candidate."""
