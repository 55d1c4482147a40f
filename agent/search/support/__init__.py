"""Data structures and formulas that several search algorithms share."""
