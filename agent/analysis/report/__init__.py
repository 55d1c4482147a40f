"""What people and machines are told of a run."""
