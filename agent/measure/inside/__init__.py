"""Programs that Ramify plants in a sandbox next to the tests. They are read as text and never imported on this side."""
