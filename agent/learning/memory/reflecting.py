"""Reflecting: a model contrasts the value expected of a state with the measured one, once, and the journal keeps the
result.

R-MCTS (arXiv 2410.02052) reflects in this way on the actions with the most surprising values, and passes the
reflections on to later tasks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from agent.budget import BudgetSpent
from agent.errors import RamifyError
from agent.learning.memory.admission import Unverified, now, source_of
from agent.learning.memory.items import Reflection
from agent.learning.memory.remembering import LESSON, done_in, reflections
from agent.models import Ask, Message, Model
from agent.models.answers import Abstained, ask_until_readable, last_object, line, words_in
from agent.prompts import render
from agent.run.events import Noted
from agent.run.run import Run
from agent.run.tree.node import Node, NodeId
from agent.untrusted import fence, one_line, visible

log = logging.getLogger(__name__)

OTHERS = 4
"""How many other changes of the same state are shown, the best first."""


@dataclass(frozen=True, slots=True)
class Reflector:
    """Asks a model about the states of a run whose values surprised. `ask` returns the function that asks on behalf of
    a node, and `record` keeps an answer in the journal."""

    model: Model
    ask: Callable[[NodeId], Ask]
    record: Callable[[Noted], None]

    def __call__(self, run: Run) -> None:
        """Note a lesson for each surprise of a run that has none yet. If the model cannot be asked, or the budget is
        spent, the remaining surprises get none."""
        try:
            found = reflections(run, source_of(run, now()))
            for reflection in found:
                if run.note(reflection.node, LESSON) is None:
                    self.record(Noted(reflection.node, LESSON, self._lesson(run, reflection)))
        except Unverified:
            return
        except (BudgetSpent, RamifyError, Abstained) as why:
            log.warning("%s: some states with unexpected values get no lesson: %s", run.journal.directory, why)

    def _lesson(self, run: Run, reflection: Reflection) -> str:
        node = run.tree[reflection.node]
        evidence = visible(
            render(
                "memory_surprise",
                issue=reflection.issue,
                done=reflection.done,
                change=done_in(node),
                predicted=f"{reflection.predicted:.2f}",
                measured=f"{reflection.measured:.2f}",
                said=reflection.said,
                others=_others(run, node),
            )
        ).strip()
        question = render("memory_reflection", evidence=evidence, fence=fence("surprise", evidence))
        messages: list[Message] = [{"role": "user", "content": question}]
        return ask_until_readable(self.ask(node.id), self.model, messages, _read_lesson)


def _others(run: Run, node: Node) -> list[str]:
    """The other changes of the parent state, with the values that were measured."""
    siblings = [other for other in run.tree.children(node.parents[0]) if other.id != node.id]
    best = sorted(siblings, key=lambda other: (-other.value, other.id))[:OTHERS]
    return [f"measured {other.value:.2f}: {one_line(other.label)}" for other in best]


def _read_lesson(text: str) -> str:
    return line(words_in(last_object(text, "reflection"), "reflection", "`reflection` has to be a text"))
