"""Prompts: every one renders, strictly, and its wording has a digest."""

from __future__ import annotations

import jinja2
import pytest

from agent.policy.chat.variation import ANGLES
from agent.prompts import digest, names, render
from agent.run.rollouts import RoundPlan

POSITION: dict[str, object] = {
    "carry_out": False,
    "measured": "",
    "fused": False,
    "reflect": False,
    "diagnosed": False,
    "tried": [],
    "references": [],
    "hint": "",
    "begin": "",
}
ATTEMPT = {"what": "changed a.py", "changes": "", "refused": False, "outcome": ""}
TASK: dict[str, object] = {
    "workdir": "/w",
    "layout": "",
    "tested": True,
    "test_command": "pytest",
    "problem": "",
    "issue": "It is wrong.",
    "fence": "issue-1",
    "tests_fence": "tests-1",
    "goal_tests": (),
    "more_goals": 0,
    "failures": [],
    "tests": 9,
    "failed_before": 0,
    "failed_names": [],
    "suite_s": 2,
    "by_parts": False,
    "turns": 100,
    "output_bytes": "16,000",
    "answer_bytes": "90,000",
}
CANDIDATE = {"patch": "+ 1", "before": "1 pass, 1 fail", "after": "2 pass, 0 fail"}
ATTEMPT_TEXTS = ("hypothesis", "progress")
ATTEMPT_LISTS = (
    *("files_read", "files_changed", "commands", "tests_passed", "tests_failed"),
    *("failure_modes", "risks", "insights", "contradictions"),
)
PLAN = RoundPlan(("Look.", "Mend."), ("Mend after looking.",), ("Keep b.",), "They mended a.")
TOOL = {
    "name": "view",
    "description": "Show lines.",
    "parameters": {"properties": {"path": {"type": "string", "description": "Relative."}}, "required": ["path"]},
}
EPISODE = {"id": "e1", "outcome": "solved", "evidence": "solved in r", "issue": "It fails.\nOften."}
MEMORIES: dict[str, object] = {
    "episodes": [
        {**EPISODE, "failures": "E: 1", "tried": "", "patch": "- 1\n+ 2"},
        {**EPISODE, "failures": "", "tried": "edit 1\nedit 2", "patch": ""},
    ],
    "insights": [{"id": "i1", "text": "Look.", "runs": 1}, {"id": "i2", "text": "Think.", "runs": 2}],
    "reflections": [
        {"id": "r1", "done": "x", "said": said, "lesson": said, "predicted": "0.90", "measured": "0.10"}
        for said in "a "
    ],
    "experiences": [{"id": "x1", "done": "x", "error": "E: <number>", "change": change} for change in ("a\nb", "")],
}
SURPRISE = {"issue": "It fails.", "done": "x", "predicted": "0.90", "measured": "0.10"}
REPAIR = {"outcome": "solved", "evidence": "state 1", "issue": "It fails."}
VALUES: dict[str, list[dict[str, object]]] = {
    "chat_system": [{}],
    "chat_task": [
        {
            **TASK,
            "goal_tests": ("t.py::a",),
            "more_goals": 3,
            "failures": [{"test": "t.py::a", "message": "assert 1\nassert 2"}],
        },
        {**TASK, "failed_before": 7, "failed_names": ["t.py::a", "t.py::b"]},
        {**TASK, "layout": "src/ tests/", "failed_before": 1, "failed_names": ["t.py::a"]},
        TASK,
        {**TASK, "tested": False, "problem": "there are none"},
    ],
    "chat_references": [
        {
            "changed": ["a.py", "b.py"],
            "places": ["c.py:3: old"],
            "more": 2,
            "likely": ["d.py:3: x.old"],
            "more_likely": 1,
        },
        {"changed": ["a.py"], "places": [], "more": 0, "likely": [], "more_likely": 0},
    ],
    "chat_reproduce": [{}],
    "chat_turns_left": [{"left": 15}],
    "chat_left": [
        {"broken": broken, "goals": goals} for broken, goals in ((True, True), (False, True), (False, False))
    ],
    "chat_review": [
        {"changed": False, "diff": "", "facts": "", "undeclared": ()},
        {"changed": True, "diff": "+ 1", "facts": "4 passed", "undeclared": ["t.py::a", "t.py::b"]},
        {"changed": True, "diff": "", "facts": "", "undeclared": ()},
    ],
    "chat_position": [
        {**POSITION, "measured": "Still failing: a"},
        {**POSITION, "tried": [{**ATTEMPT, "outcome": "Broken: b\nassert", "changes": "--- a/a.py\n- 1\n+ 2"}]},
        {**POSITION, "tried": [ATTEMPT, {**ATTEMPT, "refused": True}]},
        {**POSITION, "measured": "Still failing: a", "tried": [ATTEMPT], "hint": "Look at b."},
        {**POSITION, "measured": "Still failing: a", "fused": True, "reflect": True},
        {**POSITION, "hint": "Look at b."},
        {**POSITION, "references": [{**ATTEMPT, "outcome": "Broken: b", "changes": "--- a/a.py\n- 1\n+ 2"}]},
        {**POSITION, "measured": "Still failing: a", "references": [ATTEMPT], "hint": "Look at b."},
        {**POSITION, "measured": "Still failing: a", "tried": [ATTEMPT], "hint": "It went wrong.", "diagnosed": True},
        {**POSITION, "begin": "Begin with b."},
        {**POSITION, "measured": "Still failing: a", "tried": [ATTEMPT], "begin": "Begin with b."},
        {**POSITION, "carry_out": True, "hint": "Look at b."},
    ],
    "chat_instructions": [{"instructions": "Keep it small."}],
    "chat_conventions": [
        {"files": [{"name": "AGENTS.md", "text": "Use tabs.", "left_out": 0}], "fence": "conventions-1"},
        {
            "files": [
                {"name": "AGENTS.md", "text": "Use tabs.", "left_out": 12},
                {"name": "CLAUDE.md", "text": "", "left_out": 12},
            ],
            "fence": "conventions-1",
        },
    ],
    "chat_strategy": [{"proposed": [], "hint": ""}, {"proposed": ["strategy: look"], "hint": "Look at b."}],
    "chat_memory": [{"remembered": "- Look.", "fence": "memory-1"}],
    "chat_memory_items": [
        {kind: items if kind == only else [] for kind, items in MEMORIES.items()} for only in MEMORIES
    ]
    + [MEMORIES],
    "memory_surprise": [
        {**SURPRISE, "change": "", "said": "", "others": []},
        {**SURPRISE, "change": "- a", "said": "Broken: a", "others": ["measured 0.50: another"]},
    ],
    "memory_reflection": [{"evidence": "It was.", "fence": "surprise-1"}],
    "memory_consolidate": [{"lessons": "1: Look.", "fence": "lessons-1"}],
    "memory_operations": [{"evidence": "It ended.", "fence": "repair-1", "most": 6}],
    "memory_evidence": [
        {**REPAIR, "failures": "", "lessons": (), "contrasts": (), "patch": "", "insights": []},
        {
            **REPAIR,
            "failures": "E: 1",
            "lessons": ("Look.",),
            "contrasts": (
                {"right": "+ 1", "wrong": "+ 2", "said": "E: 2"},
                {"right": "+ 1", "wrong": "+ 3", "said": ""},
            ),
            "patch": "+ 1",
            "insights": [{"id": "i1", "text": "Do."}],
        },
    ],
    "judge_system": [{}],
    "export_critique": [
        {"issue_fence": "issue-1", "issue": "It is wrong.", "fence": "attempt-1", "attempt": "I did it."}
    ],
    "export_lookahead": [
        {"branches": ["a: solved"], "left_out": 0, "chosen": "a"},
        {"branches": ["a: solved", "b: not"], "left_out": 2, "chosen": "a"},
    ],
    "export_backtrack": [{"notes": "", "to": ""}, {"notes": "Still failing: a", "to": "edit 1"}],
    "export_first_error": [{"issue": "It fails.", "wrong": "Turn 1:", "right": "Turn 1:", "fence": "ways-1"}],
    "export_reflection": [{"notes": ""}, {"notes": "Still failing: a"}],
    "judge_issue": [{"issue": "It is wrong.", "goal_tests": ()}, {"issue": "It is wrong.", "goal_tests": ("t.py::a",)}],
    "judge_candidate": [
        {**CANDIDATE, "partial": False, "scope": "", "details": "", "own_tests": "", "contradicted": ""},
        {
            **CANDIDATE,
            "partial": True,
            "scope": "2 of about 9 tests: those that reach `a.py`",
            "details": "Still failing: a",
            "own_tests": "Your tests: 1 passed.",
            "contradicted": "a: It asserts the old behaviour.",
        },
    ],
    "foresight": [{"patch": "-a\n+b", "before": "1 pass, 1 fail"}],
    "foresight_ranking": [{"changes": [("A", "+ 1"), ("B", "+ 2")]}],
    "judge_question": [{"archive": ""}, {"archive": "0: value 0.10"}],
    "tournament_system": [{}],
    "tournament_attempt": [{"letter": "A", "account": "Attempt A: it broke something", "patch": "+ 1"}],
    "verifier": [{"issue": "It is wrong.", "candidate": "+ 1"}],
    "tournament_tests": [{"lines": ["- test_new.py (by A): A passed; B failed"]}],
    "tournament_criteria": [{"letters": "AB"}],
    "tournament_question": [{"letters": "AB", "speeches": speeches} for speeches in ((), ("I am for A.",))],
    "contrast_question": [
        {"letters": "AB", "kinds": ("tests", "quality"), "signs": signs} for signs in ([], ["- A: m.py:1: it is"])
    ],
    "tournament_speech": [{"letter": "A", "speeches": speeches} for speeches in ((), ("I am for B.",))],
    "summary_system": [{}],
    "summary_question": [
        {**CANDIDATE, "turns": "On the way to state 1:", "details": details} for details in ("", "Still failing: a")
    ],
    "mend": [{"cut_off": True, "problem": ""}, {"cut_off": False, "problem": "it is empty"}],
    "debate_speech": [{"side": "for"}, {"side": "against"}],
    "debate_verdict": [{"speech_for": "It is right.", "speech_against": "It is wrong."}],
    "checklist_make": [{"wanted": 6}],
    "checklist_score": [{"items": ["Is it right?", "Is it whole?"]}],
    "chat_mend": [
        {"cut_off": True, "problem": ""},
        {"cut_off": False, "problem": ""},
        {"cut_off": False, "problem": "there is no tool 'look'"},
        {"cut_off": True, "problem": "it is not closed"},
    ],
    "chat_variation": [
        {"angle": "Look.", "test": "", "message": "", "files": ()},
        {"angle": "Look.", "test": "t.py::a", "message": "", "files": ("a.py", "b.py")},
        {"angle": "Look.", "test": "t.py::a", "message": "assert 1", "files": ()},
    ],
    "chat_plans": [{"wanted": 3, "merged": merged} for merged in (True, False)],
    "chat_step": [{"step": "Look.", "causes": ["a", "b"][:n], "last": n == 1} for n in (1, 2)],
    "chat_plan": [{"cause": "It is narrow.", "steps": ["Look.", "Mend."], "first": first} for first in (True, False)],
    "chat_wave": [
        {"summaries": ["Attempt 1: better\n- how far: a"], "fence": "attempts-1", "plan": None},
        {"summaries": ["Attempt 1: better"] * 2, "fence": "attempts-1", "plan": PLAN},
        {"summaries": [], "fence": "attempts-1", "plan": RoundPlan(steps=("Look.",))},
    ],
    "chat_wave_attempt": [
        {"number": 1, "outcome": "solved", **dict.fromkeys(ATTEMPT_TEXTS, ""), **dict.fromkeys(ATTEMPT_LISTS, ())},
        {"number": 2, "outcome": "worse", **dict.fromkeys(ATTEMPT_TEXTS, "a"), **dict.fromkeys(ATTEMPT_LISTS, ("b",))},
    ],
    "delegate_system": [{}],
    "delegate_plan": [
        {"issue": "It is wrong.", "fence": "issue-1", "goal_tests": goals} for goals in ((), ("t.py::a", "t.py::b"))
    ],
    "delegate_part": [
        {"statement": "Mend a.", "files": (), "problems": (), "issue": ""},
        {"statement": "Mend a.", "files": ("a.py", "b.py"), "problems": ("it conflicts in a.py",), "issue": "Both."},
    ],
    "refine_system": [{}],
    "refine_hint": [
        {"bad": None, "failing": []},
        {"bad": {"what": "", "broken": [], "mended": [], "ran": False}, "failing": ["t.py::a"]},
        {"bad": {"what": "< to <=", "broken": [], "mended": [], "ran": True}, "failing": []},
        {"bad": {"what": "< to <=", "broken": ["t.py::a", "b"], "mended": ["c"], "ran": True}, "failing": ["t.py::a"]},
    ],
    "refine_plan": [{"summaries": ["Attempt 1: better"], "fence": "attempts-1"}],
    "chat_repeats": [{"times": 2, "last": False}, {"times": 3, "last": True}],
    **{name: [{}] for name in ANGLES},
    "chat_left_out": [{"bytes": 12000}],
    "chat_calls": [{"example": "<function=submit>\n</function>", "tools": [TOOL]}],
    "chat_results": [
        {"results": [{"call": "view", "text": "a", "fence": "f1"}, {"call": "edit", "text": "b", "fence": "f2"}]}
    ],
}
"""What each prompt is given, in every form that it takes. A new prompt of any policy has a line here."""


@pytest.mark.parametrize("name", names())
def test_every_prompt_renders_without_a_gap_or_a_tag_left_over(name: str) -> None:
    for values in VALUES[name]:
        text = render(name, **values)
        assert text.strip()
        assert not any(mark in text for mark in ("{{", "}}", "{%", "\n\n\n"))


def test_a_value_that_is_missing_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError, match="proposed"):
        render("chat_strategy")


def test_the_issue_stands_in_the_prompt_as_it_was_written() -> None:
    issue = "a <b> & {{ config }} {% raw %} \\ 'q'"
    assert f"\n{issue}\n" in render("chat_task", **{**TASK, "issue": issue})


def test_failures_keep_their_shape() -> None:
    text = render("chat_task", **VALUES["chat_task"][0])
    assert "- t.py::a\n- ... and 3 more\n" in text
    assert "- t.py::a:\n  assert 1\n  assert 2\n" in text


def test_tests_that_failed_before_are_no_goals() -> None:
    known, unknown, one, *_ = (render("chat_task", **values) for values in VALUES["chat_task"])
    assert "have to pass" in known
    assert "7 of the 9 tests fail before your change; not your concern" in unknown
    assert "- t.py::a\n- t.py::b\n- ... and 5 more\n" in unknown
    assert "1 of the 9 tests fails before" in one
    assert "have to pass" not in unknown + one


def test_a_digest_tells_prompts_apart_and_is_always_the_same() -> None:
    assert digest("chat_system") == digest("chat_system")
    assert len({digest(name) for name in names()}) == len(names())
