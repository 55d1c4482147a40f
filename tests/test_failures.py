"""What the failure of a test says to whoever repairs the code."""

from __future__ import annotations

import pytest

from agent.measure.inside.cutting import cut, ending
from agent.measure.messages import error_of, places_of
from agent.measure.suite import run_suite
from tests.measuring import CONFTEST, PYTEST, Lab

SHOP = '''"""A shop."""

import json


def total(prices, discount=None):
    """The sum.

    >>> total([1, 2])
    4
    >>> total(None)
    0
    """
    return sum(prices) - lowered(discount)


def lowered(discount):
    try:
        return {None: 0}[discount]
    except KeyError as error:
        raise ValueError(f"no discount {discount}") from error


def applied(function, values):
    return list(map(function, values))


def nested(depth):
    return nested(depth - 1) if depth else json.loads("{")


def parsed():
    return eval("1 +")
'''
TESTS = """import unittest

import pytest

from shop import applied, nested, parsed, total


def numbers(count):
    return list(range(count))


class Silent(Exception):
    def __str__(self):
        raise RuntimeError


@pytest.fixture
def broken():
    return total([1], "half")


def test_total():
    assert total([1, 2]) == 4

def test_cause():
    applied(lambda price: total([price], "half"), [1])

def test_nested():
    nested(50)

def test_parsed():
    parsed()

def test_long():
    assert not numbers(900), " ".join(map(str, numbers(900)))

def test_nothing_raised():
    with pytest.raises(ValueError):
        total([1])

def test_set_up(broken): pass

def test_silent():
    raise Silent

class TestOld(unittest.TestCase):
    def test_equal(self):
        self.assertEqual(total([1, 2]), 4)
"""
PROJECT = {
    "shop.py": SHOP,
    "conftest.py": CONFTEST,
    "tests/test_shop.py": TESTS,
    "tests/test_chain.py": "import broken\n",
    "broken.py": "import shop\nfrom shop import nothing_like_it\n",
    "tests/test_syntax.py": "def test_x(:\n    pass\n",
}


@pytest.fixture(scope="module")
def said(provider, tmp_path_factory):
    lab = Lab(
        provider, tmp_path_factory.mktemp("repo"), PROJECT, f"{PYTEST} --doctest-modules --doctest-continue-on-failure"
    )
    report = run_suite(provider, lab.task, lab.base, lab.base)
    assert report.valid

    def said(test):
        return report.messages[test].split("\n")

    return said


def in_shop(test):
    return f"tests/test_shop.py::{test}"


@pytest.mark.namespace
class TestAMessage:
    def test_is_the_calls_inside_the_repository_and_the_assertion_with_its_explanation(self, said):
        assert said(in_shop("test_total")) == [
            "tests/test_shop.py:23: in test_total",
            "    assert total([1, 2]) == 4",
            "E   AssertionError: assert 3 == 4",
            "E    +  where 3 = total([1, 2])",
        ]

    def test_has_the_exceptions_that_led_to_the_last_one_first(self, said):
        lines = said(in_shop("test_cause"))
        assert lines[-1] == "E   ValueError: no discount half"
        assert lines.index("E   KeyError: 'half'") < lines.index("The above exception was the cause of this one:")
        assert "shop.py:25: in applied" in lines
        assert error_of("\n".join(lines)) == "ValueError: no discount half"

    def test_counts_calls_outside_the_repository_and_ends_where_the_exception_was_raised(self, said):
        lines = said(in_shop("test_nested"))
        assert lines[:6] == [
            "tests/test_shop.py:29: in test_nested",
            "    nested(50)",
            "shop.py:29: in nested",
            '    return nested(depth - 1) if depth else json.loads("{")',
            "  (the same 50 times more)",
            "  (2 calls outside of the repository)",
        ]
        assert "json/decoder.py:" in lines[6]
        assert lines[-1].startswith("E   json.decoder.JSONDecodeError: ")

    def test_of_a_set_up_begins_at_the_fixture(self, said):
        lines = said(in_shop("test_set_up"))
        assert "tests/test_shop.py:19: in broken" in lines
        assert lines[-1] == "E   ValueError: no discount half"

    def test_names_the_place_of_a_text_that_is_no_python(self, said):
        assert said(in_shop("test_parsed"))[-3:] == ["<string>:1", "    1 +", "E   SyntaxError: invalid syntax"]
        assert said("tests/test_syntax.py")[0] == "tests/test_syntax.py:1"

    def test_of_a_file_that_cannot_be_imported_is_the_chain_of_imports_inside_the_repository(self, said):
        lines = said("tests/test_chain.py")
        assert lines[:4] == [
            "tests/test_chain.py:1: in <module>",
            "    import broken",
            "broken.py:2: in <module>",
            "    from shop import nothing_like_it",
        ]
        assert lines[4].startswith("E   ImportError: cannot import name 'nothing_like_it' from 'shop'")

    def test_says_nothing_of_the_runner(self, said):
        assert said(in_shop("test_nothing_raised"))[:2] == [
            "tests/test_shop.py:38: in test_nothing_raised",
            "    with pytest.raises(ValueError):",
        ]
        assert len(said(in_shop("test_nothing_raised"))) == 3
        assert said(in_shop("TestOld::test_equal"))[1:] == [
            "    self.assertEqual(total([1, 2]), 4)",
            "E   AssertionError: 3 != 4",
        ]

    def test_of_a_doctest_has_what_was_expected_and_what_came(self, said):
        text = "\n".join(said("shop.py::shop.total"))
        assert "Expected:\n    4\nGot:\n    3\n" in text
        assert "TypeError: 'NoneType' object is not iterable" in text

    def test_that_is_long_keeps_the_first_calls_and_both_ends_of_the_exception(self, said):
        lines = said(in_shop("test_long"))
        assert len("\n".join(lines)) < 1_700
        assert lines[0] == "tests/test_shop.py:35: in test_long"
        assert lines[2].startswith("E   AssertionError: 0 1 2 3 ")
        assert any("bytes left out here" in line for line in lines)
        assert any(line.endswith(" 898 899") for line in lines)

    def test_of_an_exception_that_cannot_be_printed_is_its_name(self, said):
        assert said(in_shop("test_silent"))[-1] == "E   test_shop.Silent: <exception str() failed>"


class TestATextThatIsCut:
    def test_ends_at_lines_where_there_are_any(self):
        shown, elided = cut("\n".join(f"line {n}" for n in range(100)), 100)
        assert elided > 0
        assert all(line.startswith(("line ", "[... ")) for line in shown.split("\n"))

    def test_ends_at_words_where_there_are_no_lines(self):
        text = " ".join(f"word{n:03}" for n in range(100))
        shown, _ = cut(text, 101)
        head, _, tail = shown.split("\n")
        assert {len(word) for word in f"{head} {tail}".split()} == {7}

    def test_may_be_its_end_only(self):
        shown = ending("\n".join(f"line {n}" for n in range(100)), 50).split("\n")
        assert shown[0].endswith("bytes left out here ...]")
        assert shown[1:] == [f"line {n}" for n in range(94, 100)]


def test_places_are_read_as_pytest_and_as_python_write_them():
    text = 'a.py:3: in f\n    g()\n  File "b/c.py", line 7, in g\nE   ValueError: x.py:9'
    assert places_of(text) == [("a.py", 3), ("b/c.py", 7)]
