"""Ramify as a library: search for a tested patch, from an issue on a repository."""
