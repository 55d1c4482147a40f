"""What an edit makes of a file, and what it says when it cannot be made; and that any call at all can be answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.actions import BadCall, Edit, Replacement, Write, as_call, parse, schema
from agent.actions.replacing import NoSuchPlace, edited, inverse_edit
from sandboxes import Provider, Sandbox, Snapshot, Workspace
from tests.acting import do

GREETING = "def greet(name):\n    text = 'hello ' + name\n    return text\n"
LETTERS = "ab\n \t\r'\u2019\u00e9\u0301\udcffa"
TOOLS = [tool["function"]["name"] for tool in schema()]
ARGUMENTS = sorted({key for tool in schema() for key in tool["function"]["parameters"]["properties"]})
SCALARS = (None, True, 0, 1, -1, 10**30, 0.5, 1e300, "", "a", ".", "x\0", "\u2019\n")
EXAMPLES = 20
"""Made of one draw: drawing costs more than what is tested."""
LENGTH = 40
DRAWN = st.binary(min_size=EXAMPLES * (LENGTH + 1), max_size=EXAMPLES * (LENGTH + 1))


def examples(drawn: bytes, least: int, most: int = LENGTH) -> Iterator[bytes]:
    """Some bytes each, of which a test makes what it needs."""
    for at in range(0, len(drawn), LENGTH + 1):
        yield drawn[at + 1 : at + 1 + least + drawn[at] % (most - least + 1)]


def pieces(data: bytes, count: int) -> list[str]:
    """So many texts of a few characters, made of a file's worth of bytes."""
    letters = "".join(LETTERS[byte % len(LETTERS)] if byte < 250 else "|" for byte in data)
    cut = len(letters) // count or 1
    parts = letters.split("|") if "|" in letters else [letters[n : n + cut] for n in range(0, len(letters), cut)]
    return (parts + [""] * count)[:count]


def value(data: Iterator[int], depth: int = 0) -> object:
    """Any JSON value."""
    kind = next(data, 0)
    if kind % 4 == 3 and depth < 2:
        return {ARGUMENTS[next(data, 0) % len(ARGUMENTS)]: value(data, depth + 1) for _ in range(kind % 5)}
    if kind % 4 == 2 and depth < 2:
        return [value(data, depth + 1) for _ in range(kind % 3)]
    return SCALARS[kind % len(SCALARS)]


@pytest.fixture(scope="module")
def base(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    repo = tmp_path_factory.mktemp("repo")
    (repo / "pkg").mkdir()
    (repo / "greet.py").write_text(GREETING)
    (repo / "greet.py").chmod(0o755)
    (repo / "link.py").symlink_to("greet.py")
    (repo / "pkg/dos.py").write_bytes(b"a = 1\r\nb = 2\r\n")
    (repo / "pkg/latin.txt").write_bytes(b"caf\xe9 one\nhello\n")
    return provider.create(Workspace(path=repo))


def in_file(text: str, piece: str) -> str:
    """A piece with the line ends of a text whose lines all end in \\r\\n; else as it is."""
    uniform = "\n" in text and text.count("\n") == text.count("\r\n")
    return piece.replace("\r\n", "\n").replace("\n", "\r\n") if uniform else piece


def refusal(text: str | None, old: str, new: str = "x", line: int | None = None) -> str:
    with pytest.raises(NoSuchPlace) as caught:
        edited(text, old, new, line)
    return str(caught.value)


class TestAnEditOfAText:
    @settings(max_examples=16_000 // EXAMPLES, deadline=None)
    @given(DRAWN)
    def test_changes_the_one_place_that_was_meant_or_says_why_not(self, drawn: bytes) -> None:
        for data in examples(drawn, 12):
            self.is_changed_or_refused(data)

    def is_changed_or_refused(self, data: bytes) -> None:
        text, old, new = pieces(data[2:], 3)
        line = data[0] // 8 % 3 or None
        old = text[data[1] % 8 :][:9] if data[0] % 4 else old
        was, will = in_file(text, old), in_file(text, new)
        places = [n for n in range(len(text)) if was and text.startswith(was, n)]
        places = [n for n in places if line in (None, text[:n].count("\n") + 1)]
        if was and was != will and len(places) == 1:
            at = places[0]
            after = edited(text, old, new, line)
            assert after.text == text[:at] + will + text[at + len(was) :]
            assert after.first == text[:at].count("\n") + 1
        elif was or was == will:
            assert refusal(text, old, new, line)

    @settings(max_examples=4_000 // EXAMPLES, deadline=None)
    @given(DRAWN)
    def test_with_nothing_to_replace_adds_whole_lines_or_says_why_not(self, drawn: bytes) -> None:
        for data in examples(drawn, 12):
            self.is_added_or_refused(data)

    def is_added_or_refused(self, data: bytes) -> None:
        text, new = pieces(data[1:], 2)
        number = data[0] % 10
        count = text.count("\n") + (bool(text) and not text.endswith("\n"))
        if not new or number > count + 1 or (text and not number):
            assert refusal(text, "", new, number or None)
            return
        after = edited(text, "", new, number or None)
        if not number:
            assert after.text == new
            return
        will, end = in_file(text, new), in_file(text, "\n")
        lines = text.split("\n")
        before = "\n".join(lines[: number - 1]) + "\n" * (number > 1)
        missing = end if number > 1 and len(lines) == number - 1 else ""
        if missing:
            before = text + missing
        assert after.text == before + will + ("" if will.endswith("\n") else end) + text[len(before) :]
        assert after.first == number

    @settings(max_examples=4_000 // EXAMPLES, deadline=None)
    @given(DRAWN)
    def test_can_be_taken_back_by_one_edit_of_whole_lines(self, drawn: bytes) -> None:
        for data in examples(drawn, 12):
            before, after = (text.replace("\udcff", "\n").replace("\r", "") for text in pieces(data, 2))
            if before != after and after:
                undo = inverse_edit("f", before, after)
                assert undo is not None
                assert edited(after, undo.old, undo.new, undo.line).text == before

    def test_needs_a_line_where_the_text_is_not_unique(self) -> None:
        assert "3 times, at lines 1, 3, 4" in refusal("x\ny\nx\nx\n", "x", "z")
        assert edited("x\ny\nx\nx\n", "x", "z", line=3) == ("x\ny\nz\nx\n", 3, 3)
        assert "not begin at line 2, but at 1, 3, 4" in refusal("x\ny\nx\nx\n", "x", "z", 2)
        assert "more than once at line 1" in refusal("x x\n", "x", "z", 1)

    def test_inserts_before_a_line_and_at_the_end(self) -> None:
        assert edited("a\nc\n", "", "b", 2) == ("a\nb\nc\n", 2, 2)
        assert edited("a\nc", "", "d\ne\n", 3) == ("a\nc\nd\ne\n", 3, 4)
        assert "`insert_line` is 3, and the file has 2 lines" in refusal("a\nc\n", "", "b", 4)

    def test_writes_line_ends_as_the_file_has_them(self) -> None:
        assert edited("a\r\nb\r\n", "a\nb", "a\nc\nb").text == "a\r\nc\r\nb\r\n"
        assert edited("a\r\nb\r\n", "", "c", 2).text == "a\r\nc\r\nb\r\n"
        assert r"end in \r\n" in refusal("a\r\nb\r\nc\n", "a\nb")

    def test_creates_no_file_that_is_there_and_changes_none_that_is_not(self) -> None:
        assert edited(None, "", "x = 1\n").text == "x = 1\n"
        assert edited("", "", "x = 1\n").text == "x = 1\n"
        assert "the file exists and has 2 lines" in refusal("a\nb\n", "")
        assert "no such file: make it with create" in refusal(None, "a")
        assert "no such file: make it with create" in refusal(None, "", "a", 1)

    def test_of_a_large_file_takes_no_time_to_speak_of(self) -> None:
        many = "}\n" * 50_000
        assert "occurs 50000 times" in refusal(many, "}")
        assert "nearest lines" in refusal(many, "}\n" * 50_001 + "{")


class TestATextThatIsNotThere:
    def test_is_answered_with_the_nearest_lines(self) -> None:
        text = "a = 1\nfirst = compute(a)\nb = 2\n"
        assert "the nearest lines are:\n     1\ta = 1\n     2\tfirst = compute(a)\n" in refusal(
            text, "first = compute(b)"
        )

    def test_is_answered_so_in_a_file_of_any_length(self) -> None:
        text = "".join(f"value_{n} = {n}\n" for n in range(20_000)) + "def last(one):\n    pass\n"
        assert "20001\tdef last(one):" in refusal(text, "def last(two):\n    return 1\n")

    @pytest.mark.parametrize(
        ("there", "old"),
        [
            ("if a:\n\treturn b\n", "if a:\n    return b\n"),
            ("if a:\n    return b   \n", "if a:\n    return b\n"),
            ("if a:\n    return b\n", "if a:\n  return b\n"),
            ("if a:\n    return  b\n", "    return b\n"),
        ],
    )
    def test_but_for_white_space_is_shown_with_the_white_space_visible(self, there: str, old: str) -> None:
        why = refusal(there, old)
        assert "only the white space differs" in why
        assert "\u00b7\u00b7" in why or "\u2192return" in why

    def test_is_not_said_to_differ_in_white_space_where_a_line_is_missing(self) -> None:
        assert "the nearest lines are" in refusal("a()\nb()\n", "a()\n  b()\nc()\n")

    @pytest.mark.parametrize("old", ["     2\tb = 2\n     3\tc = 3\n", "2: b = 2\n3: c = 3", "2 | b = 2"])
    def test_because_line_numbers_came_with_it_is_said_so(self, old: str) -> None:
        assert "it holds the line numbers that view shows" in refusal("a = 1\nb = 2\nc = 3\n", old)

    def test_because_of_characters_that_look_alike_names_them(self) -> None:
        why = refusal("a = 1\nsay(\u2018hello\u2019)\n", "say('hello')")
        assert "at line 2 it has characters that look alike: '\u2018' (U+2018) for your \"'\" (U+0027)" in why

    def test_because_an_accent_is_a_character_of_its_own_is_said_so(self) -> None:
        assert "accents are composed in another way" in refusal("name = 'e\u0301'\n", "name = '\u00e9'")

    def test_because_it_is_escaped_twice_is_said_so(self) -> None:
        assert "escaped once too often" in refusal('a = 1\nb = "2"\n', 'a = 1\\nb = \\"2\\"')

    def test_because_the_edit_was_made_before_is_said_so(self) -> None:
        assert "`new_str` occurs already, at line 2" in refusal(
            "a = 1\nif len(x) <= 0:\n", "if len(x) < 0:", "if len(x) <= 0:"
        )

    def test_and_is_like_nothing_is_said_to_be_so(self) -> None:
        assert "nothing like it" in refusal("a\n", "something else entirely")


class TestAnyCall:
    @settings(max_examples=10_000 // EXAMPLES, deadline=None)
    @given(DRAWN)
    def test_of_a_tool_is_an_action_that_reads_back_or_is_told_what_is_wrong(self, drawn: bytes) -> None:
        for data in examples(drawn, 0, 20):
            rest = iter(data)
            name = TOOLS[next(rest, 0) % len(TOOLS)]
            arguments = {ARGUMENTS[key % len(ARGUMENTS)]: value(rest, 1) for key in data[1:3]}
            self.is_read_or_refused(name, json.dumps(arguments))

    @settings(max_examples=10_000 // EXAMPLES, deadline=None)
    @given(DRAWN)
    def test_that_is_any_text_is_one_too_or_is_told_so(self, drawn: bytes) -> None:
        for data in examples(drawn, 12):
            text = data.decode("utf-8", "surrogateescape")
            for name in (text, TOOLS[len(data) % len(TOOLS)]):
                self.is_read_or_refused(name, text)
                self.is_read_or_refused(name, json.dumps(value(iter(data))))

    def is_read_or_refused(self, name: str, arguments: str) -> None:
        try:
            action = parse(name, arguments)
        except BadCall as bad:
            complaint = str(bad)
            assert complaint.isprintable()
            assert 0 < len(complaint) < 600
        else:
            assert parse(*as_call(action)) == action


@pytest.mark.namespace
class TestAnEditOfAFile:
    def test_replaces_the_text_and_shows_the_place(self, box: Sandbox) -> None:
        seen = do(Edit("greet.py", "'hello '", "'good day '"), box)
        assert box.read("greet.py").decode() == GREETING.replace("hello", "good day")
        assert "     2\t    text = 'good day ' + name" in seen.text

    def test_leaves_every_other_byte_alone(self, box: Sandbox) -> None:
        do(Edit("pkg/dos.py", "b = 2", "b = 3\nc = 4"), box)
        do(Edit("pkg/latin.txt", "hello", "bye"), box)
        assert box.read("pkg/dos.py") == b"a = 1\r\nb = 3\r\nc = 4\r\n"
        assert box.read("pkg/latin.txt") == b"caf\xe9 one\nbye\n"

    def test_keeps_the_mode_and_goes_through_a_link_without_replacing_it(self, box: Sandbox) -> None:
        assert do(Edit("link.py", "hello", "bye"), box).ok
        looked = box.exec(["stat", "-c", "%F %a", "link.py", "greet.py"], timeout_s=100).stdout
        assert looked == b"symbolic link 777\nregular file 755\n"
        assert b"bye" in box.read("greet.py")

    def test_inserts_creates_and_never_creates_over_what_is_there(self, box: Sandbox) -> None:
        assert "     1\timport os" in do(Edit("greet.py", "", "import os", line=1), box).text
        assert (
            do(Edit("new/dir/file.py", "", "x = 1\n"), box).text
            == "Created new/dir/file.py. It now reads:\n     1\tx = 1"
        )
        assert box.read("new/dir/file.py") == b"x = 1\n"
        seen = do(Edit("greet.py", "", "x = 1\n"), box)
        assert "greet.py is unchanged: the file exists" in seen.text
        assert box.read("greet.py").decode() == "import os\n" + GREETING

    def test_whole_is_a_write_that_says_what_it_replaced(self, box: Sandbox) -> None:
        assert do(Write("made.py", "x = 1\n"), box).text == "Created made.py: 1 line."
        assert do(Write("greet.py", "x = 1\ny = 2"), box).text.endswith("it had 3 lines and has 2 lines now.")
        assert not do(Write("pkg", "x"), box).ok

    def test_in_several_places_is_made_whole_and_shows_each(self, box: Sandbox) -> None:
        box.write("many.txt", "".join(f"line {n}\n" for n in range(1, 31)).encode())
        more = (Replacement("line 20\n", "twenty\nand\n"), Replacement("twenty", "20"))
        seen = do(Edit("many.txt", "line 2\n", "two\nand more\n", more=more), box)
        assert seen.ok
        assert "     2\ttwo\n     3\tand more\n" in seen.text
        assert "\n   ...\n    18\tline 17\n" in seen.text
        assert "    21\t20\n    22\tand\n" in seen.text
        assert box.read("many.txt").decode().startswith("line 1\ntwo\nand more\nline 3\n")

    def test_of_which_one_place_is_missing_changes_nothing_and_says_which(self, box: Sandbox) -> None:
        seen = do(Edit("greet.py", "hello", "bye", more=(Replacement("nowhere", "x"),)), box)
        assert "greet.py is unchanged: of the edits, number 2: `old_str` does not occur" in seen.text
        assert box.read("greet.py").decode() == GREETING

    def test_of_every_occurrence_shows_where_they_were(self, box: Sandbox) -> None:
        seen = do(Edit("greet.py", "name", "who", replace_all=True), box)
        assert box.read("greet.py").decode() == GREETING.replace("name", "who")
        assert "     1\tdef greet(who):\n     2\t    text = 'hello ' + who" in seen.text
        box.write("many.txt", b"a\n\n\n\n\n\n\n\n\n" * 30)
        assert "and 20 more places" in do(Edit("many.txt", "a", "b", replace_all=True), box).text
        assert "does not occur" in do(Edit("many.txt", "a", "b", replace_all=True), box).text

    def test_that_python_cannot_parse_any_more_says_so_and_stays(self, box: Sandbox) -> None:
        seen = do(Edit("greet.py", "    return text\n", "  return text\n"), box)
        assert (seen.ok, box.read("greet.py").decode().endswith("\n  return text\n")) == (True, True)
        assert "greet.py does not parse now: line 3: unindent does not match" in seen.text
        assert "does not parse" not in do(Edit("greet.py", "hello", "bye"), box).text
        assert "new.py does not parse now: line 1: " in do(Write("new.py", "def f(:\n"), box).text
        assert "does not parse" not in do(Write("new.py", "x = '\\d'\n"), box).text
        assert "does not parse" not in do(Write("new.txt", "def f(:\n"), box).text

    def test_that_fails_shows_bytes_that_are_no_text_so_that_they_can_be_stored(self, box: Sandbox) -> None:
        seen = do(Edit("pkg/latin.txt", "cafe one", "x"), box)
        assert "     1\tcaf\ufffd one" in seen.text
        assert json.dumps(seen.text, ensure_ascii=False).encode()

    @pytest.mark.parametrize(
        "action",
        [
            Edit("greet.py", "no such text", "x"),
            Edit("greet.py", "name", "x"),
            Edit("greet.py", "", "x", line=9),
            Edit("none.py", "a", "b"),
            Edit("pkg", "a", "b"),
            Edit("greet.py/x", "", "b"),
        ],
    )
    def test_that_fails_changes_nothing(self, provider: Provider, base: Snapshot, box: Sandbox, action: Edit) -> None:
        assert not do(action, box).ok
        assert provider.changes(base, box.snapshot()) == ()

    def test_is_what_it_is_of_a_text_whatever_the_bytes(self, box: Sandbox) -> None:
        rng = Random(7)
        for _ in range(60):
            text, old, new = pieces(rng.randbytes(30), 3)
            old = text[2:6] if rng.random() < 0.5 else old
            data = text.encode("utf-8", "surrogateescape")
            box.write("any.txt", data)
            seen = do(Edit("any.txt", old, new), box)
            assert json.dumps(seen.text, ensure_ascii=False).encode()
            wanted = data
            if seen.ok:
                wanted = edited(data.decode("utf-8", "surrogateescape"), old, new).text.encode(
                    "utf-8", "surrogateescape"
                )
            assert box.read("any.txt") == wanted
