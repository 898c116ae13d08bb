"""Checks of stored studies: logs, proposals replayed, best candidates measured again, digests of runs compared."""
