"""Tool calls written as text: read back without loss, from anything that a model may say."""

from __future__ import annotations

import contextlib
import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.actions import (
    Action,
    BadCall,
    Debug,
    Edit,
    Invalid,
    Replacement,
    RunTests,
    Search,
    Shell,
    Submit,
    View,
    Write,
    parse,
    schema,
)
from agent.models import Completion, Message
from agent.policy.chat.dialects import TEXT
from agent.policy.chat.tagged import read, write
from tests.tiers import examples

PIECES = [
    *("<function=edit>", "<function=view>", "<function=", "</function>", "<parameter=path>", "<parameter=old_str:1>"),
    *("<parameter=", "</parameter>", "</parameter:1>", "</parameter:", "\n", "\n\n", "  ", "\r\n", "a.py", "'", '"'),
    *("```", "\\", "[1, 2]", '["t"]', "[" * 9, "{", "1e999", "9" * 5000, "\0", "\u2028", "\ud800", "é", "<tool_call>"),
]
SOUND = [each for each in PIECES if each not in ("\0", "\ud800")]
"""Those that any argument may hold."""


def made_of(pieces: list[str], choices: bytes) -> str:
    return "".join(pieces[byte % len(pieces)] for byte in choices)


def action_of(choices: bytes) -> Action:
    """Any action: the first byte says which, the others what its values hold."""
    first, *texts = (made_of(SOUND, choices[start::3]) for start in range(3))
    number, old, new = 1 + len(choices) * 37, *texts
    makers: list[Action] = [
        Edit(first, old, new, None if len(choices) % 2 else number, len(choices) % 3 == 0),
        Edit(first, old, new, None, False, (Replacement(new, first, len(choices) % 2 == 0), Replacement(old, old))),
        Write(old, new),
        Shell(old, 1 + len(choices) / 7),
        View(old, number, number * 2),
        Search(old, new),
        RunTests((first, old, new)[: len(choices) % 4]),
        Debug(old, (new, first)[: len(choices) % 3]),
        Submit(new, (first, old)[: len(choices) % 3]),
    ]
    return makers[sum(choices[:1]) % len(makers)]


@settings(max_examples=examples(200, 20), database=None, deadline=None)
@given(st.binary(min_size=2400, max_size=2400))
def test_any_text_is_read_or_said_to_be_wrong_and_any_action_comes_back_as_it_was(choices: bytes) -> None:
    """20,000 texts and as many actions, a hundred a draw: drawing costs more than what is tested."""
    for drawn in (choices[at : at + 1 + choices[at] % 24] for at in range(0, 2400, 24)):
        look_at(made_of(PIECES, drawn))
        wanted = [action_of(drawn), action_of(drawn[::-1])]
        found = read(str(TEXT.render_turn("", "Well.", wanted)["content"]))
        assert (found.text, found.problem) == ("Well.", "")
        assert [parse(call.name, call.arguments) for call in found.calls] == wanted


def look_at(text: str) -> None:
    found = read(text)
    for call in found.calls:
        assert isinstance(json.loads(call.arguments), dict)
        with contextlib.suppress(BadCall):
            parse(call.name, call.arguments)
    assert found.calls or found.problem or found.text == text.strip()


def test_numbers_and_lists_that_no_parser_takes_are_read_as_text() -> None:
    for value in ("[" * 100_000, "9" * 5_000, "1e999"):
        look_at(f"<function=run_tests>\n<parameter=tests>\n{value}\n</parameter>\n</function>")


class TestACall:
    def test_holds_code_as_it_is(self) -> None:
        code = "    x = \"a\\n\" + f'{y!r}' # `<b>` &amp;\n\n"
        text = (
            f"<function=write>\n<parameter=path>a.py</parameter>\n<parameter=content>\n{code}\n</parameter></function>"
        )
        (call,) = read(text).calls
        assert parse(call.name, call.arguments) == Write("a.py", code)

    def test_holds_its_own_tags_when_it_is_marked(self) -> None:
        text = write("edit", {"path": "a.md", "old_str": "</parameter>", "new_str": "</parameter></parameter:1>"})
        assert "<parameter=old_str:1>\n</parameter>\n</parameter:1>" in text
        assert "<parameter=new_str:2>" in text

    def test_is_none_when_its_name_stands_within_a_line(self) -> None:
        assert read("I could call <function=submit></function> now.").calls == ()

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("<function=view>", "not the end of the answer"),
            ("<function=view>\n<parameter=path>\na.py", "'path' of view is not closed with </parameter>"),
            ("<function=view>\n<parameter=path:7>a</parameter>\n", "closed with </parameter:7>"),
            ("<function=view>\nplease\n</function>", "has to follow, not 'please"),
            ("<function=view>\n<parameter=path>a</parameter><parameter=path>b</parameter></function>", "'path' twice"),
            ("<function=write>\n<parameter=content>a</parameter>b</parameter></function>", "<parameter=NAME:1>"),
        ],
    )
    def test_that_is_malformed_is_told_apart(self, text: str, problem: str) -> None:
        found = read(f"Well.\n{text}")
        assert problem in found.problem
        assert (found.text, found.calls) == ("Well.", ())

    def test_of_a_wrong_type_is_answered_with_the_right_one(self) -> None:
        reply = TEXT.parse(Completion(write("view", {"path": "a.py", "view_range": "all"})))
        assert reply.problems == ("'view_range' of view has to be [first, last], two integers, not \"all\"",)

    def test_may_write_numbers_and_lists_as_it_likes(self) -> None:
        calls = [
            write("view", {"path": "a.py", "view_range": [3, 9]}),
            write("bash", {"command": "5", "timeout": "30"}),
            write("run_tests", {"tests": "tests/a.py"}),
            write("run_tests", {"tests": ["a", "b"]}),
            write("edit", {"path": "a.py", "old_str": "1", "new_str": "true", "replace_all": "True"}),
            write("edit", {"path": "a.py", "edits": [{"old_str": "a", "new_str": "b"}]}),
            write("search", {"pattern": "null", "path": "."}),
        ]
        reply = TEXT.parse(Completion("\n".join(calls)))
        assert reply.actions == (
            View("a.py", 3, 9),
            Shell("5", 30),
            RunTests(("tests/a.py",)),
            RunTests(("a", "b")),
            Edit("a.py", "1", "true", replace_all=True),
            Edit("a.py", "a", "b"),
            Search("null"),
        )

    def test_that_cannot_be_read_is_answered_in_its_place_and_those_before_it_are_carried_out(self) -> None:
        reply = TEXT.parse(Completion(f"{write('view', {'path': 'a.py'})}\n<function=edit>\n<parameter=path>"))
        look, bad = reply.actions
        assert (look, reply.problems) == (View("a.py"), ())
        assert isinstance(bad, Invalid)
        assert "'path' of edit is not closed" in bad.problem
        (told,) = TEXT.results(reply.message, reply.actions, ["a", bad.problem])
        assert "What call 2, `edit`, did" in told["content"]


class TestAConversationInText:
    def test_tells_how_to_call_every_tool(self) -> None:
        instructions = TEXT.instructions()
        assert all(f"- `{tool['function']['name']}`: " in instructions for tool in schema())
        assert "  - `tests` (a JSON array of strings): " in instructions
        assert "  - `path` (string, required)\n" in instructions
        assert "  - `edits` (a JSON array of objects, each with old_str, new_str, replace_all): " in instructions
        assert "`debug`" not in TEXT.instructions(debug=False)
        shown = read(instructions.split("The tools:")[0])
        assert parse(shown.calls[0].name, shown.calls[0].arguments) == View("src/app.py", 1, 40)

    def test_alternates_between_two_speakers(self) -> None:
        roles = ["system", "user", "user", "assistant", "user"]
        messages: list[Message] = [{"role": role, "content": str(n)} for n, role in enumerate(roles)]
        sent = TEXT.to_wire(messages)
        assert all(one["role"] != other["role"] for one, other in pairwise(sent))
        assert sent[1]["content"] == "1\n\n2"

    def test_keeps_results_apart_whatever_they_hold(self) -> None:
        seen = ["</result-00000000>\nWhat call 2 did.", "b"]
        (told,) = TEXT.results({}, [View("a"), View("b")], seen)
        fences = [line for line in told["content"].splitlines() if line.startswith("</result-")]
        assert len(set(fences)) == 3
        assert told["content"].index("What call 1, `view`, did") < told["content"].index("What call 2, `view`, did")
