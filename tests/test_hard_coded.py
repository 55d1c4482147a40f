"""Answers that are hard-coded for the tests: what is found, and that right code is left alone."""

from __future__ import annotations

from textwrap import dedent

import pytest

from agent.evaluate.hard_coded import cases_of_issue, cases_of_tests, signs

TESTS = """
import pytest

def test_calls():
    assert area(3, 4) == 12
    assert fact(0) == 1
    assert fact(5) == 120
    assert sign(-7) == -1

def test_names():
    given = "  Some Words "
    assert slug(given) == "some-words"
    assert kind("mp4") == "video"
    assert label(1) == "one item"
    assert clamp(300) == 255

class TestMore:
    def test_it(self):
        self.assertEqual(joined(["a", "b"]), "a+b")

@pytest.mark.parametrize(("number", "word"), [(17, "seventeen"), (90, "ninety")])
def test_words(number, word):
    assert spelled(number) == word
"""

HARD_CODED = {
    "all arguments": """
        def area(a, b):
            if a == 3 and b == 4:
                return 12
            return 0
        """,
    "nested": """
        def area(a, b):
            if a == 3:
                if b == 4:
                    return 12
            return a
        """,
    "a tuple": """
        def area(*sides):
            if sides == (3, 4):
                return 12
            return 0
        """,
    "one number": """
        def fact(n):
            if n == 5:
                return 120
            return 1
        """,
    "an expression": """
        def fact(n):
            return 120 if n == 5 else 1
        """,
    "a result that is set": """
        def fact(n):
            result = 1
            if n in (5,):
                result = 120
            return result
        """,
    "a match": """
        def fact(n):
            match n:
                case 5:
                    return 120
            return 1
        """,
    "what a test keeps in a name": """
        def slug(text):
            if text == "  Some Words ":
                return "some-words"
            return text
        """,
    "a list": """
        def joined(parts):
            if parts == ["a", "b"]:
                return "a+b"
            return ""
        """,
    "a parameter of a test": """
        def spelled(number):
            if number == 17:
                return "seventeen"
            elif number == 90:
                return "ninety"
        """,
    "inside of a loop and a try": """
        def spelled(number):
            for _ in range(1):
                try:
                    if number == 17:
                        return "seventeen"
                except ValueError:
                    pass
        """,
    "what the issue says": """
        def twice(text):
            if text == "ab":
                return "abab"
        """,
}
RIGHT = {
    "a computed answer": """
        def area(a, b):
            if a == 3 and b == 4:
                return a * b
            return a * b
        """,
    "the end of a recursion": """
        def fact(n):
            if n == 0:
                return 1
            return n * fact(n - 1)
        """,
    "one and many": """
        def label(n):
            if n == 1:
                return "one item"
            return f"{n} items"
        """,
    "a comparison by order": """
        def sign(n):
            if n < 0:
                return -1
            return 1
        """,
    "a limit": """
        def clamp(n):
            if n > 255:
                return 255
            return n
        """,
    "an option": """
        def kind(mode):
            if mode == "fast":
                return "video"
            return mode
        """,
    "nothing given": """
        def joined(parts):
            if parts == []:
                return ""
            return "+".join(parts)
        """,
    "a value that is given back": """
        def spelled(number):
            if number == 17:
                return 17
            return number
        """,
    "a type": """
        def area(a, b):
            if isinstance(a, str):
                return 12
            return a * b
        """,
    "a constant": """
        def fact(n):
            limit = 120
            return limit if n > 5 else 1
        """,
    "what no test expects": """
        def fact(n):
            if n == 6:
                return 720
            return 1
        """,
    "a test of another function's answer": """
        def fact(n):
            if n == 5:
                return 12
            return 1
        """,
}


def found(source: str) -> list[tuple[int, str]]:
    cases = cases_of_tests(TESTS) + cases_of_issue(
        "`twice` is wrong.\n\n>>> twice('ab')\n'ab'\n\ntwice('ab') is 'abab'"
    )
    text = dedent(source)
    return signs(text, range(1, text.count("\n") + 2), cases)


@pytest.mark.parametrize("source", HARD_CODED.values(), ids=HARD_CODED)
def test_a_literal_answer_to_the_input_of_a_test_is_found(source):
    assert found(source)


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_right_code_is_left_alone(source):
    assert found(source) == []


def test_the_line_and_both_literals_are_named():
    assert found(HARD_CODED["one number"]) == [(4, "the input 5 of a test is answered with 120, which it expects")]


def test_only_lines_that_were_added_count():
    text = dedent(HARD_CODED["one number"])
    assert signs(text, {2, 3, 5}, cases_of_tests(TESTS)) == []


def test_a_source_that_cannot_be_parsed_has_no_signs():
    assert signs("def f(:", {1}, cases_of_tests("def test(:")) == []
