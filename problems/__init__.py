"""Problem families that ship with bbo_suite."""
