"""For CI pipelines: failed tests as a task, a check of the patch, and outputs of the step."""
