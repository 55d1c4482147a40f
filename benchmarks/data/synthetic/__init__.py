"""Synthetic bugs: real modules broken on purpose, where tests that passed notice it (as SWE-smith makes its tasks)."""
