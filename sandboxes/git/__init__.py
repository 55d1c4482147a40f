"""The only way git is called: with an environment of its own, no filters, no hooks, and paths taken literally."""
