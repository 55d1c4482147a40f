"""Self-training: collect searches with the present policy, learn a new policy from them, and keep it only if it is
better."""
