"""Reports about a run, for people and for programs."""
