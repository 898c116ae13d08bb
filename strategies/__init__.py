"""Search strategies that ship with bbo_suite."""
