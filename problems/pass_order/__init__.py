"""What all problems of the order of a compiler's passes share, their Gymnasium environment, and policies for it."""
