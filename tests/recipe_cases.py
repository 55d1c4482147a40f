"""Recipes of searches: what a model does under each, what only its mechanism leaves behind, what switches it off."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat, takewhile
from pathlib import Path
from typing import Any

from agent.actions import Action, Debug, Edit, Shell
from agent.actions.tools import as_call
from agent.learning.memory.remembering import LESSON
from agent.run.events import Added, Begun, Summarised, Voted
from agent.run.rollouts import Briefing
from agent.run.run import Run
from agent.run.tree.choice import Choice
from agent.run.tree.evaluation import MANIPULATION
from agent.run.tree.node import Node, NodeId
from agent.search.clade import Clade
from agent.solver.contrast import suspects
from tests import commands
from tests.attacks.cheats import NOTHING
from tests.halves import HIGH, LOW, SPOILT
from tests.projects import QUICK
from tests.scripted_server import Reply, ScriptedServer, says

ROOT = Path(__file__).parent.parent

VERDICT = {
    "return_to": "0",
    "value": 0.4,
    "interest": 0.8,
    "verdict": "refine",
    "assessment": "Only one half is right.",
}
PLAN = {"steps": ["Mend `high` as well."], "feedback": "The other half was overlooked."}
SUMMARY: dict[str, object] = {"hypothesis": "a half", "outcome": "improved", "progress": "one half"}
SUMMARY |= {key: [] for key in ("files_read", "files_changed", "commands", "tests_passed", "tests_failed")}
SUMMARY |= {"failure_modes": [], "risks": [], "insights": []}
SUSPECTS = {"suspects": [{"attempt": "A", "kind": "tests", "reason": "It asks for [1, 2]."}]}
LEARNED = "Ask which half a name promises."
SAYS = {
    "Rank all of them": json.dumps({"ranking": ["B", "A"]}),
    "What do you expect of it?": json.dumps({"score": 35}),
    "Contrast what was expected": json.dumps({"reflection": LEARNED}),
    "Compare the attempts with each other": json.dumps(SUSPECTS),
    "Make the strongest honest case": "It is right.",
    "Which attempt solves": json.dumps({"winner": "A", "reason": "It is shorter."}),
    "Draw one plan": json.dumps(PLAN),
    "Report on this attempt": json.dumps(SUMMARY),
}
"""What the model answers to questions without tools, by a mark in them."""


Made = Callable[[Run], object]


@dataclass(frozen=True)
class Case:
    """A recipe, what a model does under it, and what its mechanism alone leaves in the journal."""

    recipe: str
    made: Made | Sequence[Made]
    """What holds of its runs alone; each of several, if its mechanism has parts."""
    lines: Sequence[Sequence[Action]] = ()
    """What the model does in each line of work before it submits, the last one again and again; none: `mutate`
    searches."""
    options: Sequence[str] = ()
    tested: bool = False
    """Whether the model runs the tests before it submits, so that a state in the middle of a line is recorded."""
    pytest: bool = False
    """Whether its mechanism needs what only pytest's runs give, as `mutate` always does."""
    views: int = 0
    """How often the model looks at what it changed before it submits."""
    verdicts: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """What a judge says in place of `VERDICT`, by a line of the patch."""

    @property
    def parts(self) -> Sequence[Made]:
        return (self.made,) if callable(self.made) else self.made


def choices(run: Run) -> list[Choice]:
    return [event.choice for event in run.journal.events() if isinstance(event, Added) and event.choice]


def gone_on_from(run: Run) -> list[NodeId]:
    """The states at which a search began lines of work, in that order."""
    begun = [event.choice for event in run.journal.events() if isinstance(event, Begun)]
    return [choice.node for choice in begun if not choice.continues]


def chosen_by(run: Run, *terms: str) -> bool:
    """Whether a choice was made by these terms."""
    return any(set(terms) <= {*reason.terms} for choice in choices(run) for reason in choice.reasons)


def compared(run: Run) -> list[tuple[Node, Mapping[str, float]]]:
    """The states that choices chose, and those that came second, each with its terms."""
    reasons = [reason for choice in choices(run) for reason in choice.reasons]
    found = [(reason.node, reason.terms) for reason in reasons]
    found += [(each.rival, each.rival_terms) for each in reasons if each.rival is not None and each.rival_terms]
    return [(run.tree[node], terms) for node, terms in found]


def chose_against_the_score(run: Run) -> bool:
    """Whether a model's word sent the search to a state with another before it by the score."""
    found = [reason for choice in choices(run) for reason in choice.reasons if reason.terms.get("chosen") == 1]
    return any(reason.rival_terms and reason.rival_terms["score"] > reason.terms["score"] for reason in found)


def left_what_is_dull(run: Run) -> bool:
    """Whether no state in which a model found nothing of interest was gone on from, but another one as good was."""
    dull = {node.id for node in run.tree if node.evaluation.parts.get("interest") == 0}
    others = {node.id for node in run.tree if not node.terminal} - dull
    best = max((run.tree[node].evaluation.by_tests for node in dull), default=2.0)
    gone_on = {*gone_on_from(run)}
    return not dull & gone_on and any(run.tree[node].evaluation.by_tests >= best for node in others & gone_on)


def faded(run: Run) -> bool:
    """Whether a state was chosen by a value that is not its own yet, as its prior counts beside it."""
    found = [reason for choice in choices(run) for reason in choice.reasons if reason.terms.get("visits") == 1]
    return any(abs(reason.terms["value"] - run.tree[reason.node].value) > 0.01 for reason in found)


def placed(run: Run) -> bool:
    """Whether a state was chosen for more than any unsolved state is worth, as its place among its siblings counts."""
    best = max(node.value for node in run.tree if not node.evaluation.solved)
    found = [reason for choice in choices(run) for reason in choice.reasons if "explore" in reason.terms]
    return any(reason.terms["value"] > best and run.tree[reason.node].evaluation.expected == 1 for reason in found)


def passed_over(run: Run) -> bool:
    """Whether a state was gone on from although an older one of its level, which never was, is worth as much."""
    chosen = gone_on_from(run)
    waiting = [node for node in run.tree if not node.terminal and node.id not in chosen]
    pairs = [(run.tree[node_id], other) for node_id in chosen for other in waiting]
    depth = run.tree.depth
    return any(
        other.id < node.id and other.value >= node.value and depth(other.id) == depth(node.id) for node, other in pairs
    )


def counts_descendants(run: Run) -> bool:
    """Whether a state was drawn by more measurements than its own."""
    trials = Clade().trials
    return any(terms.get("successes", 0) + terms.get("failures", 0) > 1.5 * trials for _, terms in compared(run))


def costs_more_than_its_edits(run: Run) -> bool:
    return any("g" in terms and terms["g"] > run.tree.depth(node.id) for node, terms in compared(run))


def left_at_a_word(run: Run) -> bool:
    """Whether a critic's word ended a branch, and another that is worth no more by its tests was repaired."""
    repaired = [run.tree.parent(node.id) for node in run.tree if node.kind == "debug"]
    ended = [node for node in run.tree if node.evaluation.parts.get("abort") == 1]
    return any(
        not run.tree.children(one.id) and other and other.evaluation.by_tests <= one.evaluation.by_tests
        for one in ended
        for other in repaired
    )


def waits_as_unsafe(run: Run) -> bool:
    """Whether the state after a `git push` is worth most of all, and was never gone on from."""
    pushed = [node for node in run.tree for step in node.steps if any(isinstance(a, Shell) for a in step.actions)]
    others = [run.tree[node_id].value for node_id in gone_on_from(run)]
    return any(node.value > max(others) and node.id not in gone_on_from(run) for node in pushed)


def has_one_built_on_another_s(run: Run) -> bool:
    """Whether a policy went on from a state that another one found."""
    return any(
        node.policy_id != (parent := run.tree.parent(node.id)).policy_id and parent.parents
        for node in run.tree
        if node.parents
    )


def valued_by(run: Run, name: str) -> bool:
    return any(name in node.evaluation.parts for node in run.tree)


def asked(run: Run, mark: str) -> bool:
    """Whether a model was asked something with this in it."""
    return any(mark in str(run.conversations.whole(each.conversation.digest)[-1]) for each in run.asked)


def briefings(run: Run) -> list[Briefing]:
    return [each.briefing for each in run.rounds if each.briefing]


def summarised_before_the_vote(run: Run) -> bool:
    """Whether a model had summarised every rollout of the first round before the first vote."""
    events = run.journal.events()
    before = list(takewhile(lambda event: not (isinstance(event, Voted) and event.ballot.judge != "tests"), events))
    rollouts = {event.node.id for event in before if isinstance(event, Added) and event.node.submitted}
    return rollouts == {
        each.summary.leaf for each in before if isinstance(each, Summarised) and each.summary.author != "journal"
    }


def voted_on_pairs(run: Run) -> bool:
    """Whether a model compared three rollouts two at a time, each pair more than once."""
    votes = Counter(frozenset(each.group) for each in run.ballots if each.round == 1 and each.judge != "tests")
    return {len(group) for group in votes} == {2} and min(votes.values()) > 1 and len(frozenset().union(*votes)) == 3


def saw_values(run: Run) -> bool:
    """Whether a model was shown the values on the way to a failure."""
    pairs = [
        pair for node in run.tree for step in node.steps for pair in zip(step.actions, step.observations, strict=False)
    ]
    return any(isinstance(action, Debug) and "(numbers=[1, 2]) returned 2" in seen.text for action, seen in pairs)


NOTHING_RUNS = f"import _pytest.python as python\npython.{NOTHING}"
FORGE = replace(LOW, new="    return 0\n\n\n" + NOTHING_RUNS + "\n\ndef twice")
LOWER = replace(LOW, new=LOW.new.replace("min(numbers)", "sorted(numbers)[0]"))
HALVES = ([LOW], [LOWER], [HIGH])
SPECIAL_LOW = replace(LOW, new="    return numbers[0] if numbers == [1, 2] else max(numbers)\n\n\ndef twice")
SPECIAL_HIGH = Edit("halves.py", "    return min(numbers)\n", "    return 2 if numbers == [1, 2] else min(numbers)\n")
IN_LOW, IN_LOWER = "+    return min(numbers)", "+    return sorted(numbers)[0]"

CASES = [
    Case(
        "swe-search",
        (
            lambda run: chosen_by(run, "exploitation", "fruitless"),
            lambda run: valued_by(run, "judge"),
            lambda run: asked(run, "honest case"),
        ),
        HALVES,
        ["rollouts=2", "tournament.votes=1"],
    ),
    Case(
        "codetree",
        lambda run: {"strategy", "solution", "debug"} <= {node.kind for node in run.tree} and left_at_a_word(run),
        ([LOW], [HIGH]),
        ["search.strategies=2", "budget.max_nodes=6"],
        verdicts={IN_LOW: {"verdict": "abort"}},
    ),
    Case(
        "weboperator",
        lambda run: waits_as_unsafe(run) and asked(run, "begin this one as follows. Look"),
        ([LOW, Shell("git push")], [SPOILT]),
        ['sandbox.allow=["push"]', "budget.max_nodes=4"],
        tested=True,
    ),
    Case(
        "mcgs", lambda run: any(choice.act == "fuse" and not choice.because for choice in choices(run)), ([LOW], [HIGH])
    ),
    Case("toolchain-star", costs_more_than_its_edits, options=["budget.max_nodes=3"]),
    Case(
        "ets",
        passed_over,
        (*HALVES, []),
        ["rollouts=9", "search.width=2", "search.children=3", "budget.max_nodes=12"],
        tested=True,
    ),
    Case(
        "go-explore",
        lambda run: chose_against_the_score(run) and left_what_is_dull(run),
        ([LOW], [HIGH], [LOWER], []),
        ["budget.max_nodes=8"],
        tested=True,
        verdicts={IN_LOW: {"interest": 0}, IN_LOWER: {"return_to": "3"}},
    ),
    Case(
        "mars2",
        lambda run: chosen_by(run, "mean", "n") and has_one_built_on_another_s(run),
        HALVES,
        ['panel=["mutate"]', "seed=1", "budget.max_nodes=4"],
        tested=True,
        pytest=True,
    ),
    Case(
        "i-mcts",
        (faded, lambda run: any(node.prior == node.evaluation.expected == 0.35 for node in run.tree)),
        HALVES,
        ["budget.max_nodes=4"],
    ),
    Case(
        "r-mcts",
        (
            lambda run: chosen_by(run, "visits", "expansions") and valued_by(run, "debate"),
            lambda run: run.note(1, LESSON) == LEARNED,
        ),
        HALVES,
        ["memory.path=memory.db", "budget.max_nodes=3"],
    ),
    Case(
        "agent-q",
        (lambda run: asked(run, "Rank all of them"), placed),
        HALVES,
        ["budget.max_nodes=9", "search.widen=1.0", "search.depth=9"],
        tested=True,
    ),
    Case("hgm", counts_descendants, options=["budget.max_nodes=4"]),
    Case(
        "rtv-pdr",
        (
            voted_on_pairs,
            summarised_before_the_vote,
            lambda run: any(each.summaries and not each.plan for each in briefings(run)),
        ),
        HALVES,
        ["rollouts=3"],
        views=3,
    ),
    Case("sage", lambda run: any(each.plan and each.plan.steps for each in briefings(run)), HALVES),
    Case("caid", lambda run: {"part-1", "part-2"} <= {node.policy_id for node in run.tree}, options=["workers=2"]),
    Case(
        "tracecoder",
        lambda run: any(node.refused for node in run.tree) and asked(run, "It was taken back") and saw_values(run),
        ([Debug("test_halves.py::test_low"), SPOILT], [LOW], [HIGH]),
        pytest=True,
    ),
    Case(
        "trace",
        lambda run: suspects(run) and any(node.evaluation.notes.startswith(MANIPULATION) for node in run.tree),
        ([FORGE], [SPECIAL_LOW, SPECIAL_HIGH], [LOW, HIGH]),
        ["tournament.votes=1"],
        pytest=True,
    ),
]

OFF = [
    ("swe-search", "search.name=mcts", "value.name=tests", "tournament.judge=vote"),
    ("codetree", "value.name=tests"),
    ("weboperator", "sandbox.allow=[]"),
    ("weboperator", "search.name=beam", "search.children=1"),
    ("weboperator", "policy.angles=false"),
    ("mcgs", "search.name=mcts"),
    ("toolchain-star", "search.tokens=0", "search.runs=0", "search.failed=0"),
    ("ets", "search.cost=0", "search.coverage=0"),
    ("go-explore", "value.choose=false"),
    ("mars2", "search.name=best_of_n"),
    ("i-mcts", "prior=policy", "search.prior_visits=0"),
    ("i-mcts", "search.prior_visits=0"),
    ("r-mcts", "value.name=tests", "memory.reflect=false"),
    ("agent-q", "prior=policy", "search.prior_share=0"),
    ("agent-q", "search.prior_share=0"),
    ("hgm", "search.value=self"),
    ("rtv-pdr", "tournament.model_summaries=false", "tournament.group=3", "rounds=1"),
    ("sage", "refine.plan=false"),
    ("caid", "delegate=false"),
    ("tracecoder", "gate=none"),
    ("trace", "tournament.contrast=false"),
]
"""The options that switch the mechanism of a recipe off. Several options switch off all of its parts, and nothing that
its case asserts holds any more; a single one may leave some."""


def solve(
    repo: Path,
    run: Path,
    case: Case,
    recipe: str,
    server: ScriptedServer | None = None,
    issue: str = "Both halves are wrong.",
    failing: bool = False,
) -> Run:
    """The run of a case, by the command. `server`: what the model answers; none: as the case has it. `failing`: the run
    may end by an error."""
    if server is None:
        with ScriptedServer(answering(case)) as server:
            return solve(repo, run, case, recipe, server, issue, failing)
    argv = ["solve", "--issue", issue, "--repo", repo, "--out", run, "--goal-failing"]
    argv += ["--sandbox", "namespace", "-c", "budget.max_nodes=12"]
    argv += ["-c", 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}']
    argv += ["--test", QUICK] if case.lines and not case.pytest else []
    argv += ["--recipe", recipe] if recipe else []
    argv += ["-c", "policy.name=openai/tiny", "-c", f"model.base_url={server.url}"] if case.lines else []
    argv += chain.from_iterable(("-c", each) for each in case.options)
    done = commands.ramify(argv, cwd=run.parent, env=environment(run.parent))
    assert failing or done.returncode in (0, 1), done.stderr
    return Run.read(run)


def answering(case: Case) -> Callable[[Mapping[str, Any]], Reply]:
    """What the model of a case answers."""
    left = chain(case.lines, repeat(case.lines[-1])) if case.lines else iter(())

    def looks(turn: int) -> tuple[str, dict[str, object]]:
        return "view", {"path": "halves.py", "start": 1 + turn}

    def answer_to(question: str) -> str:
        if "How likely does" in question:
            return json.dumps({**VERDICT, **next((v for line, v in case.verdicts.items() if line in question), {})})
        return next((said for mark, said in SAYS.items() if mark in question), "Mend one half.")

    def answer(body: Mapping[str, Any]) -> Reply:
        last = body["messages"][-1]
        if not body.get("tools"):
            return says(answer_to(last["content"]))
        if last["role"] == "tool" or last["content"].startswith("A reviewer gives it"):
            roles = takewhile(lambda role: role != "user", (each["role"] for each in reversed(body["messages"])))
            turn = sum(role == "assistant" for role in roles)
            return says("Done.", looks(turn) if turn < case.views else ("submit", {}))
        done = looks(0) if case.views else ("run_tests" if case.tested else "submit", {})
        return says("Now.", *map(as_call, next(left)), done, logprobs=[-0.5] if body.get("logprobs") else [])

    return answer


def environment(home: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    places = {"HOME": str(home), "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(home / "state")}
    return {"PATH": path, "OPENAI_API_KEY": "none", **places}
