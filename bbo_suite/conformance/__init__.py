"""The contracts of strategies and problems as rules that `check` applies to any plugin."""
