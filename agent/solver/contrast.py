"""Contrast: a model looks at all answers to one issue together and names those that only satisfy the tests.

TRACE (arXiv 2601.20103) finds that such answers are recognised more often next to others than alone. Invariant: tests
decide; a suspected candidate is passed over only if another is as good by the facts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from string import ascii_uppercase
from typing import Any

from agent.engine.session import Session
from agent.errors import PolicyError
from agent.models import Ask, Model
from agent.models.answers import Abstained, Unreadable, ask_within_context, last_object, line, words_in
from agent.prompts import render
from agent.run.cross_tests import UNTESTED
from agent.run.rollouts import Candidate
from agent.run.run import Run
from agent.run.tree.node import NodeId
from agent.solver.tournament.exhibit import group_messages, letters
from agent.solver.tournament.facts import distinct, facts
from agent.task import Task
from agent.untrusted import visible

KINDS = ("tests", "quality", "context", "environment")
"""The groups of TRACE: answers that exploit the test suite, that only pretend to be good code, that exploit the model's
context, and that exploit the environment of the tests."""
SUSPECTS = "suspects"
"""The prefix of the key of the root's note that lists the suspects of a round, each with its kind and the reason."""


def look(model: Model, task: Task, group: Sequence[Candidate], signs: Sequence[str], ask: Ask) -> dict[str, Any]:
    """Return the note that says which of the candidates the model suspects. `signs` has what a program found in them,
    one finding per line.

    Raises:
        agent.budget.BudgetSpent, agent.errors.ModelError, agent.errors.ConfigError: the model cannot be asked.
    """
    question = render("contrast_question", letters=letters(group), kinds=KINDS, signs=signs)
    messages, read = partial(group_messages, task, group, UNTESTED, question), partial(_read, letters(group))
    try:
        found = ask_within_context(ask, model, messages, read)
    except (Abstained, PolicyError) as why:
        return {"nodes": [each.node for each in group], "problem": str(why), "found": {}}
    by_node = {str(group[letters(group).index(name)].node): said for name, said in found.items()}
    return {"nodes": [each.node for each in group], "problem": "", "found": by_node}


def contrasted(session: Session, model: Model, task: Task, candidates: Sequence[Candidate]) -> None:
    """Note once a round which candidates, of all rounds, are suspected. The model is not asked if there are fewer than
    two different changes.

    Raises:
        agent.budget.BudgetSpent, agent.errors.ModelError, agent.errors.ConfigError: the model cannot be asked.
    """
    run, group = session.run, [entrant.candidate for entrant in distinct(candidates)][: len(ascii_uppercase)]
    if len(group) < 2:
        return
    remarks = [(run.verdict(each.node) or {}).get("remarks", ()) for each in group]
    named = zip(letters(group), remarks, strict=True)
    signs = [f"- {letter}: {visible(remark)}" for letter, each in named for remark in each]
    ask = session.gateway.at(None, "contrast")
    session.memo(f"{SUSPECTS}-{run.round}", partial(look, model, task, group, signs, ask))


def suspects(run: Run) -> dict[NodeId, str]:
    """Return the states that a model suspects, each with the reason."""
    notes = [note["found"] for (_, key), note in run.notes.items() if key.startswith(f"{SUSPECTS}-")]
    return {int(node): str(said["reason"]) for found in notes for node, said in found.items()}


def unsuspected(run: Run, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates without the suspected ones, and without those that make the same change as a suspected one,
    if another candidate is as good by the facts."""
    named = suspects(run)
    programs = {each.program for each in candidates if each.node in named}
    honest = [each for each in candidates if each.program not in programs]
    best = max(map(facts, honest), default=None)
    return [each for each in candidates if each in honest or best is None or facts(each) > best]


def _read(names: str, text: str) -> Mapping[str, Mapping[str, str]]:
    """Read the suspects from an answer, by letter."""
    entries = last_object(text, "suspects")["suspects"]
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise Unreadable("`suspects` has to be a list of objects with `attempt`, `kind` and `reason`")
    found = dict[str, Mapping[str, str]]()
    for entry in entries:
        name, kind = entry.get("attempt"), entry.get("kind")
        if not isinstance(name, str) or len(name) != 1 or name not in names:
            raise Unreadable(f"`attempt` is {str(name)[:40]!r}: give one of {', '.join(names)}")
        if kind not in KINDS:
            raise Unreadable(f"the `kind` of {name} is {str(kind)[:40]!r}: give one of {', '.join(KINDS)}")
        reason = words_in(entry, "reason", f"the `reason` for {name} is missing: say what shows it")
        found[name] = {"kind": kind, "reason": line(reason)}
    return found
