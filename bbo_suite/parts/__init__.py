"""Parts of candidates: their costs, and how a problem says which parts a candidate has."""
