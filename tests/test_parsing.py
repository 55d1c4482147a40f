"""Python sources are parsed in several threads at once, as by a search with several workers."""

import sys
import threading
from pathlib import Path

import pytest

from agent import parsing

SOURCE = Path(parsing.__file__).read_text() * 10


class Finalized:
    """Garbage whose finalizer may let another thread run."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        sum(range(50))


@pytest.fixture
def threads():
    """Runs something 40 times in each of six threads that take turns often. Returns the errors."""
    before, errors = sys.getswitchinterval(), []

    def go(what):
        for _ in range(40):
            for _ in range(100):
                Finalized()
            try:
                what()
            except Exception as error:
                errors.append(error)

    def run(what):
        all_of_them = [threading.Thread(target=go, args=(what,)) for _ in range(6)]
        for thread in all_of_them:
            thread.start()
        for thread in all_of_them:
            thread.join()
        return errors

    sys.setswitchinterval(1e-5)
    yield run
    sys.setswitchinterval(before)


def test_sources_are_parsed_in_several_threads_at_once(threads):
    assert threads(lambda: parsing.python(SOURCE)) == []


def test_literals_are_read_in_several_threads_at_once(threads):
    text = repr([{"a": [1, -2.5, None]}] * 300)
    assert threads(lambda: parsing.literal(text)) == []


@pytest.mark.parametrize("text", ["", "f()", "[1", "(" * 500 + ")" * 500, "{[]: 1}", "1 +"])
def test_text_that_is_no_literal_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"it is not a literal|malformed node"):
        parsing.literal(text)
