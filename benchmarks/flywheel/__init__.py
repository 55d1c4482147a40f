"""One turn of the flywheel: bugs, trees, rows, training, serving, and what the learned policy needs on unseen bugs."""
