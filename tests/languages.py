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
        {
            "go.mod": "module example.com/calc\n\ngo 1.19\n",
            "calc.go": GO,
            "calc_test.go": GO_TESTS,
        },
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
    "junit": Language(
        {"calc.py": PYTHON, "test_calc.py": UNITTESTS},
        "python3 -m pytest -q -p no:cacheprovider --junitxml $RAMIFY_JUNIT",
        "calc.py",
        "test_calc.Calc::test_add",
        "test_calc.Calc::test_double",
    ),
}
