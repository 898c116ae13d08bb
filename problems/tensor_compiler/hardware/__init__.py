"""The hardware model: machines, and how long one kernel takes on them."""
