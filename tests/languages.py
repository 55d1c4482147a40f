"""A calculator with one bug in each language, with a failing and a passing test, for the tests of adapters."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Language:
    """A project and what its tests say of it."""

    files: dict[str, str]
    command: str
    source: str
    """The file with the bug, `a - b`."""
    goal: str
    """The failing test, which the repair makes pass."""
    passing: str
    setup: tuple[str, ...] = ()
    needs: str = ""
    """The program without which nothing can be tried."""


NODE_SOURCE = """function add(a, b) {
  return a - b;
}
function double(a) {
  return 2 * a;
}
module.exports = { add, double };
"""
NODE_TESTS = """const { describe, it } = require('node:test');
const assert = require('node:assert');
const { add, double } = require('../calc.js');

it('adds', () => assert.strictEqual(add(1, 2), 3));
describe('double', () => {
  it('of two', () => assert.strictEqual(double(2), 4));
});
"""
EXPECTING = """const { add, double } = require('../calc.js');

it('adds', () => expect(add(1, 2)).toBe(3));
describe('double', () => {
  it('of two', () => expect(double(2)).toBe(4));
});
"""
GO = """package calc

func Add(a, b int) int { return a - b }

func Double(a int) int { return 2 * a }
"""
GO_TESTS = """package calc

import "testing"

func TestAdd(t *testing.T) {
	if got := Add(1, 2); got != 3 {
		t.Errorf("Add(1, 2) is %d", got)
	}
}

func TestDouble(t *testing.T) {
	t.Run("of two", func(t *testing.T) {
		if Double(2) != 4 {
			t.Fail()
		}
	})
}
"""
RUST = """pub fn add(a: i32, b: i32) -> i32 {
    a - b
}

pub fn double(a: i32) -> i32 {
    2 * a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds() {
        assert_eq!(add(1, 2), 3);
    }
}
"""
JAVA = """package calc;

public class Calc {
    public static int add(int a, int b) { return a - b; }

    public static int twice(int a) { return 2 * a; }
}
"""
JAVA_TESTS = """package calc;

import static org.junit.Assert.assertEquals;
import org.junit.Test;

public class CalcTest {
    @Test public void adds() { assertEquals(3, Calc.add(1, 2)); }

    @Test public void doubles() { assertEquals(4, Calc.twice(2)); }
}
"""
GRADLE = """apply plugin: 'java'
dependencies { testCompile files('/usr/share/java/junit4.jar', '/usr/share/java/hamcrest-core.jar') }
"""
PYTHON = "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return 2 * a\n"
UNITTESTS = """import os
import unittest

from calc import add, double


class Absent(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise unittest.SkipTest("not here")

    def test_nothing(self):
        pass


class Calc(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(1, 2), 3)

    def test_double(self):
        self.assertEqual(double(2), 4)


class Twice(unittest.TestCase):
    def test_elsewhere(self):
        os.chdir("/")
"""

MANAGE = """#!/usr/bin/env python
import os
import sys

os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
from django.core.management import execute_from_command_line

execute_from_command_line(sys.argv)
"""
SETTINGS = """SECRET_KEY = "x"
INSTALLED_APPS = ["shop"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
USE_TZ = True
"""
MODELS = """from django.db import models


class Item(models.Model):
    count = models.IntegerField()

    class Meta:
        app_label = "shop"
"""
DJANGO_TESTS = """from unittest import skip

from django.test import TestCase

from calc import add, double
from shop.models import Item


class Calc(TestCase):
    @classmethod
    def setUpTestData(cls):
        Item.objects.create(count=2)

    def test_add(self):
        'Items are counted.'
        self.assertEqual(add(1, Item.objects.get().count), 3)

    def test_double(self):
        self.assertEqual(double(2), 4)

    @skip("later")
    def test_later(self):
        pass
"""
MORE_TESTS = """from django.test import SimpleTestCase


class More(SimpleTestCase):
    def test_more(self):
        pass
"""
SHOP = {
    "calc.py": PYTHON,
    "shop/__init__.py": "",
    "shop/models.py": MODELS,
    "shop/tests/__init__.py": "",
    "shop/tests/test_calc.py": DJANGO_TESTS,
    "shop/tests/test_more.py": MORE_TESTS,
}
"""Of Django's."""
RUNTESTS = """#!/usr/bin/env python
import argparse
import os
import sys

import django
from django.conf import settings

os.chdir(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, "..")
parser = argparse.ArgumentParser()
parser.add_argument("modules", nargs="*")
parser.add_argument("--failfast", action="store_true")
parser.add_argument("--parallel", type=int, default=1)
options = parser.parse_args()
databases = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
settings.configure(INSTALLED_APPS=["shop"], DATABASES=databases, SECRET_KEY="x", USE_TZ=True)
django.setup()
from django.test.runner import DiscoverRunner

runner = DiscoverRunner(failfast=options.failfast, parallel=options.parallel)
sys.exit(bool(runner.run_tests(options.modules or ["shop"])))
"""
SYMPY = """import os
import random
import sys
from fnmatch import fnmatch


class PyTestReporter:
    def __init__(self):
        self.failed = 0

    def root_dir(self, folder):
        self._root_dir = folder

    def entering_filename(self, filename, n):
        print(filename, n)

    def entering_test(self, f):
        print(f.__name__)

    def test_pass(self, char="."):
        print("ok")

    def test_skip(self, v=None):
        print("skipped", v)

    def test_xfail(self):
        print("f")

    def test_xpass(self, v):
        print("X")

    def test_fail(self, exc_info):
        self.failed += 1

    def test_exception(self, exc_info):
        self.failed += 1

    def import_error(self, filename, exc_info):
        self.failed += 1


class SymPyTests:
    def __init__(self, reporter, kw=()):
        self._reporter, self._kw, self._testfiles = reporter, kw, []

    def get_test_files(self, folder, pat="test_*.py"):
        found = [os.path.join(path, f) for path, _, files in os.walk(folder) for f in files if fnmatch(f, pat)]
        return sorted(map(os.path.abspath, found))

    def test(self):
        for f in self._testfiles:
            self.test_file(f)
        return not self._reporter.failed

    def matches(self, x):
        return not self._kw or any(kw.lower() in x.__name__.lower() for kw in self._kw)

    def test_file(self, filename):
        gl = {"__file__": filename}
        try:
            exec(compile(open(filename).read(), filename, "exec"), gl)
        except ImportError:
            return self._reporter.import_error(filename, sys.exc_info())
        except Exception:
            self._reporter.test_exception(sys.exc_info())
        funcs = [f for name, f in gl.items() if name.startswith("test_") and self.matches(f)]
        if not funcs:
            return
        self._reporter.entering_filename(filename, len(funcs))
        for f in funcs:
            self._reporter.entering_test(f)
            try:
                random.seed(0)
                f()
            except Exception:
                t, v, tr = sys.exc_info()
                if t is AssertionError:
                    self._reporter.test_fail((t, v, tr))
                elif t.__name__ == "Skipped":
                    self._reporter.test_skip(v)
                else:
                    self._reporter.test_exception((t, v, tr))
            else:
                self._reporter.test_pass()


def run_in_subprocess_with_hash_randomization(function, function_args=()):
    raise RuntimeError("the tests would run elsewhere")


def test(*paths):
    ret = run_in_subprocess_with_hash_randomization("_test", function_args=paths)
    assert ret is False
    suite = SymPyTests(PyTestReporter())
    files = suite.get_test_files("sympy")
    suite._testfiles.extend(f for f in files if not paths or any(path in f for path in paths))
    return suite.test()
"""
"""The part of SymPy's runner that reports, as short as it can be."""
BIN_TEST = """#!/usr/bin/env python
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from sympy.testing.runtests import test

sys.exit(0 if test(*[each for each in sys.argv[1:] if not each.startswith("-")]) else 1)
"""
SYMPY_TESTS = """from sympy.calc import add, double


def test_add():
    assert add(1, 2) == 3


def test_double():
    assert double(2) == 4
"""
BY_SYMPY = {
    "bin/test": BIN_TEST,
    "sympy/__init__.py": "",
    "sympy/calc.py": PYTHON,
    "sympy/testing/__init__.py": "",
    "sympy/testing/runtests.py": SYMPY,
    "sympy/core/tests/test_calc.py": SYMPY_TESTS,
    "sympy/core/tests/test_more.py": "def test_more():\n    pass\n",
}
BY_PYTEST = """import sys

import pytest


def test(*paths):
    return pytest.main(["-m", "not slow", *(paths or ["sympy"])])
"""
"""The same, of SymPy from 1.13 on."""
BIN_TEST_BY_PYTEST = (
    BIN_TEST.replace("runtests import", "runtests_pytest import")
    .replace("sys.exit(0 if test", "sys.exit(test")
    .replace(" else 1)", ")")
)
TAP = """from calc import add, double

failed = 0
print("1..2")
for number, (name, good) in enumerate([("adds", add(1, 2) == 3), ("doubles", double(2) == 4)], 1):
    print("ok" if good else "not ok", number, "-", name)
    failed += not good
raise SystemExit(bool(failed))
"""

LANGUAGES = {
    "node": Language(
        {
            "calc.js": NODE_SOURCE,
            "test/calc.test.js": NODE_TESTS,
            "package.json": '{"scripts": {"test": "node --test"}}',
        },
        "node --test",
        "calc.js",
        "test/calc.test.js::adds",
        "test/calc.test.js::double::of two",
        needs="node",
    ),
    "jest": Language(
        {"calc.js": NODE_SOURCE, "test/calc.test.js": EXPECTING, "package.json": '{"scripts": {"test": "jest"}}'},
        "jest",
        "calc.js",
        "test/calc.test.js::adds",
        "test/calc.test.js::double::of two",
        needs="jest",
    ),
    "vitest": Language(
        {"calc.js": NODE_SOURCE, "test/calc.test.js": EXPECTING, "package.json": "{}"},
        "vitest run --globals",
        "calc.js",
        "test/calc.test.js::adds",
        "test/calc.test.js::double::of two",
        needs="vitest",
    ),
    "go": Language(
        {"go.mod": "module example.com/calc\n\ngo 1.19\n", "calc.go": GO, "calc_test.go": GO_TESTS},
        "go test ./...",
        "calc.go",
        "example.com/calc::TestAdd",
        "example.com/calc::TestDouble/of_two",
        setup=("go test ./... || true",),
        needs="go",
    ),
    "cargo": Language(
        {
            "Cargo.toml": '[package]\nname = "calc"\nversion = "0.1.0"\nedition = "2021"\n',
            "src/lib.rs": RUST,
            "tests/doubling.rs": "#[test]\nfn doubles() {\n    assert_eq!(calc::double(2), 4);\n}\n",
        },
        "cargo test --offline",
        "src/lib.rs",
        "calc::src/lib.rs::tests::adds",
        "doubling::tests/doubling.rs::doubles",
        needs="/usr/bin/cargo",
    ),
    "gradle": Language(  # as Debian has it, 4.4.1
        {"build.gradle": GRADLE, "src/main/java/calc/Calc.java": JAVA, "src/test/java/calc/CalcTest.java": JAVA_TESTS},
        "gradle --offline --no-daemon test",
        "src/main/java/calc/Calc.java",
        "calc.CalcTest::adds",
        "calc.CalcTest::doubles",
        needs="gradle",
    ),
    "unittest": Language(
        {"calc.py": PYTHON, "test_calc.py": UNITTESTS, "test_more.py": "from test_calc import Twice\n"},
        "python3 -m unittest",
        "calc.py",
        "test_calc.py::Calc::test_add",
        "test_calc.py::Calc::test_double",
    ),
    "django": Language(
        {**SHOP, "manage.py": MANAGE, "settings.py": SETTINGS},
        "python3 manage.py test -v 2",
        "calc.py",
        "shop/tests/test_calc.py::Calc::test_add",
        "shop/tests/test_calc.py::Calc::test_double",
    ),
    "sympy": Language(
        BY_SYMPY,
        "python3 bin/test -C --verbose",
        "sympy/calc.py",
        "sympy/core/tests/test_calc.py::test_add",
        "sympy/core/tests/test_calc.py::test_double",
    ),
    "log:tap": Language({"calc.py": PYTHON, "run_tests.py": TAP}, "python3 run_tests.py", "calc.py", "adds", "doubles"),
    "log:unittest": Language(
        {"calc.py": PYTHON, "test_calc.py": UNITTESTS},
        "python3 -m nose2",
        "calc.py",
        "test_add (test_calc.Calc.test_add)",
        "test_double (test_calc.Calc.test_double)",
    ),
    "junit": Language(
        {"calc.py": PYTHON, "test_calc.py": UNITTESTS},
        "python3 -m pytest -q -p no:cacheprovider --junitxml $RAMIFY_JUNIT",
        "calc.py",
        "test_calc.Calc::test_add",
        "test_calc.Calc::test_double",
    ),
}
