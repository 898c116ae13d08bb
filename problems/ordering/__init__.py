"""Made-up problems of order: which pass next, and sequences with forbidden transitions."""
