"""Policies of a fleet: what is tuned each day, and how."""
