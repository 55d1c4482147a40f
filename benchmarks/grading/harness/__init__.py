"""SWE-bench's way of grading: eval scripts in images, their logs, and the official harness as a second opinion."""
