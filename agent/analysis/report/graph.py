"""A run's states as a networkx graph, and in the formats that graph tools read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from agent.errors import UsageError
from agent.run.run import Run

if TYPE_CHECKING:
    import networkx as nx

    from agent.run.tree.node import NodeId


def graph_of(run: Run) -> nx.DiGraph[NodeId]:
    """The run's directed acyclic graph. An edge has a `kind` (`edit` or `reference`); a node has its `value`,
    `solved`, `label`, `kind`, `policy`, `depth`, and of its subtree `visits` and `value_sum`."""
    tree = run.tree
    graph = tree.graph
    for node in tree:
        graph.nodes[node.id].update(
            value=node.value,
            solved=run.solved(node.id),
            label=node.label,
            kind=node.kind,
            policy=node.policy_id,
            depth=tree.depth(node.id),
            visits=tree.visits(node.id),
            value_sum=tree.value_sum(node.id),
        )
    return graph


def write_graph(run: Run, path: Path) -> None:
    """Write the run's graph: GraphML for `.graphml`, networkx's node-link JSON for `.json`.

    Raises:
        agent.errors.UsageError: the name of the file ends in neither.
    """
    import networkx as nx

    if path.suffix == ".graphml":
        nx.write_graphml(graph_of(run), path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(nx.node_link_data(graph_of(run), edges="edges"), indent=1) + "\n")
    else:
        raise UsageError(f"{path}: a graph is written as .graphml or .json; give the file one of these endings")
