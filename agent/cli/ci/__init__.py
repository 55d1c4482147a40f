"""Support for CI pipelines: turns failed tests into a task, checks the patch, and writes the outputs of the step."""
