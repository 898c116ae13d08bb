"""What all problems of the order of a compiler's passes share, and their Gymnasium environment."""
