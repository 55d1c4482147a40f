"""Programs that Ramify writes into a sandbox beside the tests. They are read as text, never imported on this side."""
