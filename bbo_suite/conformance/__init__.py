"""The rules for strategies and problems, which `check` applies to any plugin."""
