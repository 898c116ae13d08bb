"""A board that others can join: a fixed list of tasks, the score of a strategy on them, and its place among others."""
