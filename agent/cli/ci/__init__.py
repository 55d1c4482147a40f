"""What a pipeline needs around a search: is a patch fit to be proposed, what was red, and where results go."""
