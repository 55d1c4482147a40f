"""The search tree: nodes and edges, which never change once recorded, and the counts that are derived from them."""
