"""Rounds: collect searches with the present policy, learn one from them, and keep it only where it is better."""
