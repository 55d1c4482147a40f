"""What a judge reads about a group: the issue, the summary and patch of each candidate, and the results of each
candidate's tests with the other patches. A candidate is named by a letter, which depends only on its position. No trace
of a rollout is shown: summaries serve judges better (arXiv 2604.16529).

Invariant: as in `agent.evaluate.value.exhibit`. The candidates of a group share one size limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from string import ascii_uppercase

from agent.actions.excerpt import printable
from agent.counting import counted
from agent.evaluate.value.exhibit import fenced, shown_issue
from agent.measure.diffs import sections
from agent.models import Message
from agent.models.answers import Unreadable, last_object, line, system_and_user, words_in
from agent.policy.chat.earlier_rounds import accounts
from agent.prompts import render
from agent.run.ballots import Ballot
from agent.run.cross_tests import Matrix, Row
from agent.run.rollouts import Candidate, Summary
from agent.solver.summaries.journal import JOURNAL
from agent.task import Task
from agent.untrusted import visible

TIE = "tie"
"""The answer of a judge that finds none better than the others."""
MOST_WEIGHT = 5
TESTS = 20
"""The maximum number of tests that a judge sees, of those that do not pass with every change."""
PATCHES_BYTES = 60_000
ACCOUNTS_BYTES = 16_000
"""Both limits are for all candidates of a group together."""


def letters(group: Sequence[object]) -> str:
    """Return the names of a group's members for a judge, in order.

    Raises:
        ValueError: the group has more members than there are letters.
    """
    if len(group) > len(ascii_uppercase):
        raise ValueError(f"a group of {len(group)}: a judge compares {len(ascii_uppercase)} at most")
    return ascii_uppercase[: len(group)]


def group_messages(
    task: Task, group: Sequence[Candidate], matrix: Matrix, question: str, length: float = 1.0
) -> list[Message]:
    """Return a question about a group. `length` is the fraction of each limit that is used, in (0, 1]."""
    summaries = accounts([_telling(each.summary) for each in group], int(ACCOUNTS_BYTES * length), letters(group))
    room = int(PATCHES_BYTES * length) // len(group)
    attempts = [
        render(
            "tournament_attempt",
            letter=letter,
            account=fenced(f"account-{letter}", account, ACCOUNTS_BYTES),
            patch=fenced(f"change-{letter}", printable(patch), room),
        )
        for letter, account, patch in zip(letters(group), summaries, _patches(group), strict=True)
    ]
    shown = (shown_issue(task, length), *attempts, *_tests(group, matrix), question)
    return system_and_user(render("tournament_system"), "\n\n".join(shown))


def _telling(summary: Summary) -> Summary:
    """Return the summary without what is meant for later attempts, and without what the journal's facts already say."""
    return replace(summary, insights=(), progress="" if summary.author == JOURNAL else summary.progress)


def _patches(group: Sequence[Candidate]) -> Iterator[bytes]:
    """Yield the patch of each candidate, with its changes of sources first. A change to a file that is the same as in
    an earlier patch is not repeated."""
    shown = dict[bytes, str]()
    for letter, candidate in zip(letters(group), group, strict=True):
        parts = sorted(sections(candidate.patch), key=lambda part: part not in candidate.source)
        yield b"".join(
            part if part not in shown else part.split(b"\n")[0] + b"\n[... as in attempt %s]\n" % shown[part].encode()
            for part in parts
        )
        for part in parts:
            shown.setdefault(part, letter)


def _tests(group: Sequence[Candidate], matrix: Matrix) -> Iterator[str]:
    """Yield the results of the tests that attempts wrote with the changes of the group; nothing if none shows the
    issue."""
    differing, same = list[str](), Counter[str]()
    for row in matrix.rows:
        authors = _authors(row, group)
        passing = [test for test in row.shown if all(row.cells[each.node][test] == "passed" for each in group)]
        differing += [
            f"- {visible(test)} ({authors}): {_ends(row, test, group)}" for test in row.shown if test not in passing
        ]
        same[authors] += len(passing)
    passed = [f"- {counted(n, 'test')} ({authors}): passed with each change" for authors, n in same.items() if n]
    if differing or passed:
        yield render("tournament_tests", lines=[*differing[:TESTS], *passed])


def _authors(row: Row, group: Sequence[Candidate]) -> str:
    """Describe for a judge of the group who wrote the tests."""
    named = list(zip(letters(group), group, strict=True))
    if names := [name for name, each in named if each.node in row.authors]:
        return f"by {', '.join(names)}"
    kin = [name for name, each in named if each.node in row.kin]
    return f"by another attempt with the change of {' and '.join(kin)}" if kin else "by another attempt"


def _ends(row: Row, test: str, group: Sequence[Candidate]) -> str:
    """Describe the result of a test with each change."""
    ends = zip(letters(group), (row.cells[each.node][test] for each in group), strict=True)
    return "; ".join(f"{name} {'could not be tested' if cell == 'invalid' else cell}" for name, cell in ends)


def read_ballot(group: Sequence[Candidate], text: str) -> Ballot:
    """Read the vote from the JSON of an answer.

    Raises:
        agent.models.answers.Unreadable: the answer contains no valid vote.
    """
    reply = last_object(text, "winner")
    winner = _winner(group, reply)
    return _ballot(group, winner, words_in(reply, "reason", "`reason` is missing: say in words what decided"))


def read_criteria(group: Sequence[Candidate], text: str) -> Ballot:
    """Compute the vote from an answer by criteria: the attempt with the greatest sum of weights wins; if several
    attempts share it, it is a tie.

    Raises:
        agent.models.answers.Unreadable: the answer contains no valid criteria.
    """
    criteria = last_object(text, "criteria")["criteria"]
    if not isinstance(criteria, list) or not criteria or not all(isinstance(each, dict) for each in criteria):
        raise Unreadable("`criteria` has to be a list of at least one object")
    sums, comparisons = Counter[str](), list[str]()
    for each in criteria:
        winner, weight = _winner(group, each), each.get("weight")
        if type(weight) is not int or not 1 <= weight <= MOST_WEIGHT:
            raise Unreadable(f"`weight` has to be a whole number from 1 to {MOST_WEIGHT}")
        name = words_in(each, "criterion", "`criterion` is missing: say in a few words what is compared")
        sums.update({winner: weight} if winner != TIE else {})
        comparisons.append(f"{name.strip()} ({weight}): {winner}")
    best = [letter for letter, weight in sums.items() if weight == max(sums.values())]
    return _ballot(group, best[0] if len(best) == 1 else TIE, "; ".join(comparisons))


def _winner(group: Sequence[Candidate], reply: Mapping[str, object]) -> str:
    """Return the letter that an answer names, or TIE."""
    winner, names = reply.get("winner"), letters(group)
    if winner != TIE and (not isinstance(winner, str) or len(winner) != 1 or winner not in names):
        raise Unreadable(f"`winner` is {str(winner)[:40]!r}: give one of {', '.join(names)}, or {TIE}")
    return str(winner)


def _ballot(group: Sequence[Candidate], winner: str, reason: str) -> Ballot:
    nodes = tuple(candidate.node for candidate in group)
    return Ballot(
        nodes, None if winner == TIE else nodes[letters(group).index(winner)], line(reason), tie=winner == TIE
    )
