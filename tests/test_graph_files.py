"""A run's states as a graph for other programs."""

from __future__ import annotations

import json

import networkx as nx
import pytest
from typer.testing import CliRunner

from agent.analysis.report.graph import graph_of
from agent.cli.app import app
from agent.errors import UsageError
from agent.run.events import Merged
from tests.histories import History, P, turn


@pytest.fixture
def run(tmp_path):
    """A root with two children, of which one led to the other's state, too."""
    history = History(tmp_path / "run")
    history.add(0, turn(), label="first")
    history.add(0, turn(), label="second", a=P)
    history.run.record(Merged(1, 2))
    yield history.run
    history.run.close()


def test_a_graph_has_the_edges_of_the_tree_and_what_is_known_of_its_nodes(run):
    graph, tree = graph_of(run), run.tree
    assert sorted(graph.edges(data="kind")) == [(0, 1, "edit"), (0, 2, "edit"), (1, 2, "reference")]
    assert [graph.nodes[n]["value"] for n in graph] == [node.value for node in tree]
    assert (graph.nodes[0]["visits"], graph.nodes[0]["value_sum"]) == (3, tree.value_sum(0))
    assert (graph.nodes[2]["depth"], graph.nodes[2]["label"]) == (1, "second")


def test_show_writes_it_for_graph_tools_and_as_json(run, tmp_path):
    run.close()
    for name in ("graph.graphml", "graph.json"):
        done = CliRunner().invoke(app, ["show", str(run.journal.directory), "--graph", str(tmp_path / name)])
        assert done.exit_code == 0, done.output
    read = nx.read_graphml(tmp_path / "graph.graphml", node_type=int)
    again = nx.node_link_graph(json.loads((tmp_path / "graph.json").read_text()), edges="edges")
    assert dict(read.nodes(data=True)) == dict(again.nodes(data=True)) == dict(graph_of(run).nodes(data=True))
    assert sorted(read.edges) == sorted(again.edges)


def test_another_ending_is_refused_with_those_that_are_known(run, tmp_path):
    run.close()
    done = CliRunner().invoke(app, ["show", str(run.journal.directory), "--graph", str(tmp_path / "graph.dot")])
    assert isinstance(done.exception, UsageError)
    assert ".graphml or .json" in str(done.exception)
