"""One candidate for several programs, and the few candidates that serve them best together."""
