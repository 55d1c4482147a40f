"""Synthetic bugs: real modules broken on purpose so that tests which passed now fail (as SWE-smith makes its tasks)."""
