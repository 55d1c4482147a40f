"""The variables of a function by number, as a compact model is shown them."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.learning.training import tiny
from agent.policy.edit.context import MOST_LINES
from agent.policy.edit.numbering import MOST, numbered, numbers

TEXT = """    def due(self, rows, *, least: int = 0):
        '''Rows that are due.'''
        global seen
        seen = [row for row in rows if row.due >= least]
        for at, (row, _) in enumerate(rows):
            with open(row) as file, self.lock:
                total = sum(each := file.due(row=row))
        try:
            import rows as again
        except OSError as error:
            raise due(error) from None
        match rows:
            case [first, *rest] | {"a": first, **rest}:
                del total
        return again.total
"""


def back(text: str, known: Mapping[str, int]) -> str:
    """With the names again."""
    names = {number: name for name, number in known.items()}
    return re.sub(r"<V(\d+)>", lambda found: names[int(found[1])], text)


def test_parameters_and_what_is_bound_in_a_function_are_its_variables_in_the_order_of_its_text() -> None:
    wanted = ["rows", "least", "row", "at", "_", "file", "total", "each", "error", "first", "rest"]
    assert list(numbers(TEXT).items()) == list(zip(wanted, range(1, 12), strict=True))


def test_attributes_and_global_names_and_the_function_itself_keep_their_names() -> None:
    shown = numbered(TEXT, numbers(TEXT))
    for kept in ("def due(self", "global seen", "<V3>.due >=", "self.lock", "<V6>.due(", "due(<V9>)", "again.total"):
        assert kept in shown


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("f.write(f'{f}\\n', n)", "<V2>.write(f'{f}\\n', <V4>)"),
        ("n = rb'\\n' + B'' + b", "<V4> = rb'\\n' + B'' + <V3>"),
        ("match = match(match, n)", "match = match(match, <V4>)"),
        ("""n = 'it\\'s b' + b  # b's n""", """<V4> = 'it\\'s b' + <V3>  # <V3>'s <V4>"""),
    ],
)
def test_what_stands_in_strings_and_soft_keywords_are_no_variables(line: str, shown: str) -> None:
    text = f"def g(a, f, b, n, B, rb):\n    {line}\n"
    assert numbered(text, numbers(text)).splitlines()[1].strip() == shown


def test_what_a_function_in_it_calls_nonlocal_is_its_variable() -> None:
    text = "def g():\n    n = 0\n    def h():\n        nonlocal n\n        n += 1\n    return h\n"
    assert numbers(text) == {"n": 1}


def test_what_is_no_whole_function_has_no_variables() -> None:
    assert numbers("def f(a):\n    return (a,\n") == {}
    assert numbers("def f(a):\n    return '\0'\n") == {}


def test_a_model_from_nothing_has_a_token_for_each_number() -> None:
    assert tiny.VARIABLES == MOST
    assert tiny.LINES >= MOST_LINES


def test_further_variables_than_a_model_has_tokens_for_keep_their_names() -> None:
    names = [f"a{number}" for number in range(MOST + 1)]
    text = f"def f({', '.join(names)}):\n    pass\n"
    assert list(numbers(text)) == names[:MOST]
    assert f"<V{MOST}>, a{MOST})" in numbered(text, numbers(text))


NAMES = st.from_regex(r"[a-z_]{1,3}", fullmatch=True).filter(lambda name: not keyword.iskeyword(name))


@given(st.lists(NAMES, min_size=4, max_size=4, unique=True), st.lists(NAMES, min_size=4, max_size=4, unique=True))
def test_a_function_reads_alike_under_all_names_and_the_names_can_be_given_back(
    names: list[str], others: list[str]
) -> None:
    texts = [
        "def {f}({0}, {1}):\n    {2} = {0}[{1}:]\n    {3} = {2}.{f} if {1} else {2}\n    return {3}\n".format(
            *each, f="a_function"
        )
        for each in (names, others)
    ]
    one, other = (numbered(text, numbers(text)) for text in texts)
    assert one == other
    assert back(one, numbers(texts[0])) == texts[0]


@pytest.mark.parametrize("text", [TEXT, ast.unparse(ast.parse("if 1:\n" + TEXT))])
def test_names_can_be_given_back(text: str) -> None:
    assert back(numbered(text, numbers(text)), numbers(text)) == text
