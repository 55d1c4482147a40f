"""One turn of the flywheel: bugs, searches, rows, training, serving, and what the learned policy needs on unseen bugs.

python -m benchmarks.flywheel --out DIR --help
"""
