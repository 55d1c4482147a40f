"""`ramify doctor`: what this machine and a model server can do, and what to change where they cannot."""
