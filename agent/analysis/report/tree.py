"""A run's tree as text, for `ramify show`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.markup import escape
from rich.tree import Tree as Drawing

from agent.analysis.report.rounds import round_lines
from agent.analysis.report.summary import cost, tally
from agent.budget import Stop
from agent.counting import counted
from agent.run.run import Run
from agent.run.tree.node import Node, NodeId
from agent.run.tree.tree import Tree
from agent.untrusted import escaped, one_line


def best_of(run: Run) -> NodeId:
    """The state whose patch is the answer, or would be if the run ended now. Raises IndexError on an empty tree."""
    return run.tree.best().id if run.ended is None or run.ended.best is None else run.ended.best


def draw(tree: Tree, best: NodeId, goals: Sequence[str] = ()) -> Drawing:
    """Every state below its edit parent; the path to the best one is marked. `goals` are the tests that have to pass.
    Raises IndexError on an empty tree."""
    best_path = {node.id for node in tree.path(best)}
    drawing = Drawing(_line(tree, tree.root, best_path, goals))
    waiting = [(tree.root, drawing)]
    while waiting:
        node, branch = waiting.pop()
        waiting.extend((child, branch.add(_line(tree, child, best_path, goals))) for child in tree.children(node.id))
    return drawing


def facts(run: Run) -> str:
    """The recipe and the usage of the run, the orders of people, and how the last session ended."""
    seconds = f"{run.elapsed_s:.0f} s"
    runs = counted(run.usage.measurements, "test run")
    spent = f"{counted(len(run.tree), 'state')}, {runs}, {seconds}{cost(run.usage)}"
    spent = "\n".join([*_recipe(run), spent, *round_lines(run), *_orders(run)])
    if run.ended is None:
        return f"{spent}\nnot ended; if no process works on it, resume it: ramify resume {run.journal.directory}"
    stop = Stop[run.ended.stop]
    status = "" if stop is Stop.SOLVED else f"{run.ended.status}: "
    reason = f" ({one_line(run.ended.reason)})" if run.ended.reason else ""
    return f"{spent}\n{status}{stop.value}{reason}"


def _recipe(run: Run) -> list[str]:
    """The recipe that the run was started with, if any."""
    name = run.started.settings.get("recipe") if run.started else None
    return [escaped(f"recipe {name}")] if name else []


def _orders(run: Run) -> list[str]:
    """The orders of people that are still in force."""
    forks = [f"asked for: fork {order.node} {order.hint}".rstrip() for _, order in run.steering.waiting(run.tree)]
    return [f"pinned: state {node}" for node in run.steering.pins] + forks


def _line(tree: Tree, node: Node, best_path: set[NodeId], goals: Sequence[str]) -> str:
    remarks = "".join(f" [{remark}]" for remark in _remarks(tree, node))
    label = node.label or ("the repository as it is" if not node.parents else "")
    line = escape(escaped(f"{node.id} {node.value:.3f} {tally(node.report, goals)}{remarks} {label}".rstrip()))
    return f"[bold]* {line}[/bold]" if node.id in best_path else line


def _remarks(tree: Tree, node: Node) -> Iterator[str]:
    """What is unusual about a state, with the states from which it was reached besides its edit parents."""
    if not node.report.valid:
        yield node.report.problem or "not valid"
    if tree.pruned(node.id):
        yield "pruned"
    sources = tree.structure.sources(node.id)
    if others := [str(source) for source in sources if source not in node.parents]:
        yield f"also reached from {', '.join(others)}"
    times = sum(tree.proposals.edge_count(source, node.id) for source in sources)
    if times > 1:
        yield f"proposed {counted(times, 'time')}"
