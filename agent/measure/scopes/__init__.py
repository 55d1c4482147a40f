"""Scopes: which tests a change can reach, found by coverage, imports and names, and how long they may take."""
