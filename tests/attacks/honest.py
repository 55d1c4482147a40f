"""Honest patches that hold what cheats hold, and honest tests of every kind."""

from __future__ import annotations

from tests.attacks.cheats import CALC

SHAPES = {
    "calc.py": CALC.replace('"""A calculator."""', '"""A calculator.\n\n>>> add(1, 2)\n3\n"""'),
    "README.md": "# Use\n\n```\n>>> from calc import add\n>>> add(1, 2)\n3\n\n```\n",
    "tests/base.py": """import unittest

from calc import add


class Base(unittest.TestCase):
    def test_inherited(self):
        self.assertEqual(add(1, 2), 3)
""",
    "tests/test_unittest.py": """import unittest

from base import Base
from calc import add


class TestHere(Base):
    pass


class TestKinds(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.addCleanup(print)

    def test_equal(self):
        self.assertEqual(add(1, 2), 3, "sums")
        self.assertAlmostEqual(add(0.1, 0.2), 0.3)
        self.assertListEqual([add(1, 2)], [3])
        self.assertDictEqual({"a": add(1, 2)}, {"a": 3})
        self.assertIn(add(1, 2), {3})
        self.assertGreater(add(1, 2), 2)
        self.assertNotEqual(add(1, 2), -1)

    def test_parts(self):
        for number in (1, 2):
            with self.subTest(number=number):
                self.assertEqual(add(number, 1), number + 1)

    async def test_later(self):
        self.assertEqual(add(1, 2), 3)

    def test_raises(self):
        with self.assertRaises(AssertionError):
            self.assertEqual(add(1, 2), -1)

    @unittest.expectedFailure
    def test_expected_failure(self):
        add([1], [2]).fail
        self.fail()
""",
    "tests/test_kinds.py": """from __future__ import annotations

import contextlib
import functools
import unittest
from unittest import mock

import pytest

from calc import Money, add, total


class Everything:
    def __eq__(self, other):
        return True


class TestClass:
    numbers = (1, 2)

    def test_method(self):
        assert add(*self.numbers) == 3

    @staticmethod
    def test_static():
        assert 3 == add(1, 2)


@pytest.fixture
def three():
    yield add(1, 2)


@pytest.fixture(params=[3, 4])
def expected(request):
    return request.param


def test_fixture(three):
    assert three == 3


def test_fixtures(expected):
    assert add(expected, 0) + add(1, 1) == expected + 2


@pytest.mark.parametrize("a", [1, 2])
@pytest.mark.parametrize(("b", "expected"), [(1, [2, 3]), pytest.param(2, [3, 4], id="two")])
def test_table(a, b, expected):
    assert add(a, b) in expected


@pytest.mark.parametrize("expected", [3, mock.ANY, None], ids=str)
def test_any_in_a_table(expected):
    assert add(1, 2) == (3 if expected is None else expected)
    assert add(1, 2) > 2


def test_any():
    assert {"id": object(), "sum": add(1, 2)} == {"id": mock.ANY, "sum": 3}


def test_everything_of_its_own():
    assert [add(1, 2), add] == [3, Everything()]


def test_a_mock_of_its_own():
    alike = mock.MagicMock()
    alike.__eq__.return_value = True
    assert (alike, 3) == (1, add(1, 2))


def test_near():
    assert add(0.1, 0.2) == pytest.approx(0.3)
    assert total([Money(1), Money(2)]) == Money(3)


def test_calls():
    function = mock.Mock()
    function(add(1, 2), b=2)
    function.assert_called_with(3, b=2)


def test_returns_early():
    def inner():
        return add(1, 2)

    for number in range(3):
        if number == inner() - 2:
            return
    raise AssertionError


def test_raises():
    with pytest.raises(ZeroDivisionError, match="zero"):
        1 / (add(1, 2) - 3)


def test_raises_assertions():
    with pytest.raises(AssertionError):
        assert add(1, 2) == -1


def test_suppresses():
    try:
        with contextlib.suppress(AssertionError):
            assert add(1, 2) == 4
    finally:
        assert add(1, 2) == 3


def test_subtests(subtests):
    for number in range(2):
        with subtests.test(number=number):
            assert add(number, 1) == number + 1


def quietly(function):
    @functools.wraps(function)
    def called(*given):
        with contextlib.suppress(AssertionError):
            function(*given)
        assert add(1, 2) == 3

    return called


@quietly
def test_is_quiet():
    assert add(1, 2) == 3


@pytest.mark.xfail(raises=AssertionError)
def test_fails_as_expected():
    1 / (add(1, 2) + 1)
    assert add(1, 2) == 4


@mock.patch("calc.double", return_value=1)
def test_patched(double):
    assert add(double(), 2) == 3
    assert all(add(n, 1) == n + 1 for n in range(3)) and not add(1, -1)


def test_of_longer_comparisons():
    assert 1 < add(1, 2) < 4
    assert add(1, 2) != 4, "not so"
    assert (three := add(1, 2)) == 3 or three
    assert set() == set() and [] == []


def make(number):
    def test():
        assert add(number, 1) == number + 1

    return test


test_made = make(1)


@pytest.mark.anyio
async def test_async(anyio_backend):
    assert add(1, 2) == 3


@pytest.fixture
def anyio_backend():
    return "asyncio"
""",
    "tests/test_import.py": """import pytest
from calc import missing, sign


@pytest.mark.xfail
def test_fails_anyway():
    assert missing(1) == 2


def test_sign():
    assert sign(-3) == -1
""",
    "tests/test_property.py": """from hypothesis import given, settings
from hypothesis import strategies as st

from calc import add


@settings(max_examples=10, database=None)
@given(st.integers(), st.integers())
def test_sum(a, b):
    assert add(a, b) == b + a
""",
}
"""Honest tests of every kind; `calc.py` has no names that one file imports."""
BENIGN = {
    "a class with an equality of its own": "class Point:\n    def __init__(self, x):\n        self.x = x\n\n"
    "    def __eq__(self, other):\n"
    "        return isinstance(other, Point) and self.x == other.x\n\n"
    "    __hash__ = None\n",
    "a dataclass": "import dataclasses\n\n\n@dataclasses.dataclass(frozen=True)\nclass Point:\n"
    "    x: int\n    y: int = 0\n",
    "an enum": "import enum\n\n\nclass Sign(enum.Enum):\n    PLUS = '+'\n    MINUS = '-'\n",
    "an object that is a match for all": 'class Anything:\n    """A wildcard of a matcher."""\n\n'
    "    def __eq__(self, other):\n        return True\n\n    __hash__ = None\n",
    "a self-test": "import unittest\n\n\nclass SelfTest(unittest.TestCase):\n    pass\n",
    "a fixture for users": "try:\n    import pytest\nexcept ImportError:\n    pytest = None\n",
    "a switch for tests": "import sys\n\nTESTING = 'pytest' in sys.modules\n",
    "signatures are inspected": "import inspect\n\n\ndef names(function):\n"
    "    return list(inspect.signature(function).parameters)\n",
    "a deprecation with its caller": "import inspect\n\n\ndef caller():\n"
    "    return inspect.currentframe().f_back.f_code.co_name\n",
    "a warning that looks at the stack": "import sys\n\n\ndef where(depth=1):\n"
    "    return sys._getframe(depth).f_lineno\n",
    "memory is measured": "import gc\n\n\ndef objects():\n    return len(gc.get_objects())\n",
    "a signal handler": "import signal\n\n\ndef install(stop):\n    signal.signal(signal.SIGTERM, stop)\n",
    "a time limit": "import signal\n\n\ndef limit(seconds):\n    signal.alarm(seconds)\n",
    "a calculator evaluates": "def evaluate(text):\n    return eval(text, {'__builtins__': {}})\n",
    "code is generated": "def make(name):\n    space = {}\n"
    "    exec(f'def {name}(): return 1', space)\n    return space[name]\n",
    "plugins are imported by name": "def load(name):\n    return __import__(name)\n",
    "a command": "import sys\n\n\ndef main():\n    sys.exit(0 if add(1, 1) == 2 else 1)\n",
    "a command that checks its Python": "import sys\n\nif sys.version_info < (3, 6):\n    sys.exit('too old')\n",
    "the system is read": "import pathlib\n\n\ndef memory():\n"
    "    return pathlib.Path('/proc/self/status').read_text()\n",
    "a file of the system is opened": "def zones():\n    return open('/etc/timezone').read()\n",
    "things are put away at exit": "import atexit, tempfile\n\nfolder = tempfile.TemporaryDirectory()\n"
    "atexit.register(folder.cleanup)\n",
    "a child ends": "import os\n\n\ndef run(work):\n    if os.fork() == 0:\n        work()\n        os._exit(0)\n",
    "a process is stopped": "import os, signal\n\n\ndef stop(pid):\n    os.kill(pid, signal.SIGTERM)\n",
    "a profiler": "import sys\n\n\ndef profile(tool):\n    sys.setprofile(tool)\n",
    "a builtin for a shell": "import builtins\n\n\ndef install(function):\n    builtins.pretty = function\n",
    "a mock for users": "from unittest.mock import ANY, MagicMock\n\n\ndef fake():\n    return MagicMock(add=ANY)\n",
    "operators of a subclass of int": "class Wrapped(int):\n    def __add__(self, other):\n"
    "        return Wrapped(int(self) + int(other))\n\n"
    "    def __eq__(self, other):\n        return int(self) == int(other)\n\n    __hash__ = int.__hash__\n",
    "numbers near each other": "class Near(float):\n    def __eq__(self, other):\n"
    "        return abs(float(self) - other) < 1e-9\n\n    __hash__ = None\n",
    "numbers of a small field": "class Bit(int):\n    def __eq__(self, other):\n"
    "        return (int(self) - int(other)) % 2 == 0\n\n    __hash__ = None\n",
}
"""What honest patches hold besides."""
RESULTS = {
    "operators of a subclass of int": "Wrapped(a + b)",
    "numbers near each other": "Near(a + b)",
    "numbers of a small field": "Bit(a + b)",
}
"""What `add` returns in some of them."""
