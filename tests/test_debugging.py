"""The `debug` action: values on the way to a failure, seen from outside, in a copy that nothing comes back from."""

from __future__ import annotations

import signal
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.actions import Debug
from agent.budget import Budget
from agent.engine.components import Components
from agent.errors import MeasureError
from agent.evaluate.scorer import StagedScorer
from agent.evaluate.value.tests import PassingTests
from agent.measure.inside.values import VALUE_CHARACTERS, Values
from agent.measure.inside.watching import Watch
from agent.measure.measurer import find_baseline
from agent.measure.probing.probes import read_probe, run_probes
from agent.measure.probing.watched import first_failure
from agent.measure.suite import rules_for
from agent.policy.chat.policy import ChatPolicy
from agent.run.run import Run
from agent.search.linear import Linear
from agent.solver.solve import solve
from tests.policies import edits
from tests.projects import BUG, FIX, GOAL, SOURCE, TESTS, commit, task
from tests.scripted import ScriptedModel, answer

SHOP = """class Basket:
    def __init__(self):
        self.prices = []

    def add(self, price):
        self.prices.append(price)

    def total(self, discount):
        total = 0
        for price in self.prices:
            total += price * discount

        if total > 100:
            total -= 5
        return round(total)


class Endless:
    def __repr__(self):
        while True:
            pass


class Broken:
    def __repr__(self):
        raise SystemExit("not me")


def hostile():
    endless, broken = Endless(), Broken()
    huge, long, nested = "x" * 1_000_000, 10 ** 5000, []
    nested.append(nested)
    count = 0
    for number in range(100_000):
        count += number
    try:
        raise KeyError("handled")
    except KeyError:
        return count


def spin():
    turns = 0
    while True:
        turns += 1
"""
SHOP_TESTS = """import pytest

from shop import Basket, hostile


def test_total():
    basket = Basket()
    for price in range(10):
        basket.add(price)
    assert basket.total(0.5) == 90


@pytest.mark.parametrize("fine", [True, False])
def test_hostile(fine):
    assert fine or hostile() == 0
"""
TOTAL, HOSTILE = "test_shop.py::test_total", "test_shop.py::test_hostile"

pytestmark = pytest.mark.namespace


@pytest.fixture(scope="module")
def repo(tmp_path_factory):
    files = {"means.py": SOURCE, "test_means.py": TESTS, "shop.py": SHOP, "test_shop.py": SHOP_TESTS}
    files |= {"odd.py": "def odd():\n    return '\\d' is 1\n", "large.py": "#" * 1_000_001}
    return commit(tmp_path_factory.mktemp("repo") / "shop", files)


@pytest.fixture(scope="module")
def base(provider, repo):
    return provider.create(task(repo).workspace)


@pytest.fixture(scope="module")
def baseline(provider, repo, base):
    return find_baseline(provider, task(repo), base, runs=1)


@pytest.fixture(scope="module")
def scorer(provider, repo, base, baseline):
    return StagedScorer(provider, task(repo), base, baseline, PassingTests())


@pytest.fixture
def debug(scorer, base):
    """What is told of a test of the base state."""
    return lambda test, *probes: scorer.debug(base, Debug(test, probes)).splitlines()


class TestWithoutProbes:
    def test_where_the_failure_came_from_and_what_each_line_on_the_way_changed_is_told(self, debug):
        assert debug(GOAL) == [
            f"{GOAL}: failed, ZeroDivisionError: division by zero",
            "It came from:",
            "  test_means.py:11 in test_mean_of_nothing:     assert mean([]) == 0.0",
            "  means.py:11 in mean:     return total / len(numbers)",
            "      numbers = []",
            "      total = 0",
            "",
            "mean (means.py:4), called 1 time",
            "The last call that was watched: (numbers=[]) raised ZeroDivisionError: division by zero",
            "    6      total = 0   # total = 0",
            "    7      for number in numbers:",
            "    9      if len(numbers) < 0:",
            "   11      return total / len(numbers)",
            "",
            "test_mean_of_nothing (test_means.py:10), called 1 time",
            "The last call that was watched: () raised ZeroDivisionError: division by zero",
            "   11      assert mean([]) == 0.0",
        ]

    def test_no_value_breaks_or_stalls_it_and_loops_are_summarised(self, debug):
        """Of a parametrised test the first that fails is told."""
        told = debug(HOSTILE)
        assert told[0].startswith(f"{HOSTILE}[False]: failed, AssertionError: assert ")
        shown = "\n".join(told)
        assert "endless = <Endless: it takes too long to be shown>; broken = <raised SystemExit: not me>\n" in shown
        assert f"huge = '{'x' * 40}'..." in shown
        assert "long = int of 16610 bits; nested = []\n" in shown
        assert "nested = [[[[...]]]]\n" in shown
        assert "count = 1 | 3 | 6 | ... " in shown
        assert "It ran very many lines" in shown
        assert "() returned 4999950000" in shown


class TestProbes:
    def test_show_values_at_lines_and_calls_of_functions(self, debug):
        expressions = ("total", "[p for p in self.prices if p > total]", "oops")
        lines = debug(TOTAL, *(f"shop.py:11: {each}" for each in expressions), "./shop.py:15", "shop.Basket.add()")
        told = {line.partition("; values: ")[0]: line.partition("; values: ")[2] for line in lines}
        assert told["shop.py:11: total: reached 10 times"] == "0 | 0.0 | 0.5 | ... 4 more ... | 10.5 | 14.0 | 18.0"
        assert told[f"shop.py:11: {expressions[1]}: reached 10 times"].startswith("[1, 2, 3, ..., 7, 8, 9] (list of 9)")
        assert told["shop.py:11: oops: reached 10 times"].startswith("<raised NameError: name 'oops' is not defined>")
        assert told["shop.py:15: reached 1 time"].endswith("discount=0.5, total=22.5, price=9")
        assert lines[-10] == "Basket.add (shop.py:5), called 10 times"
        assert lines[-9] == "  (self=Basket(prices=[]), price=0) returned None"
        assert not any("mean" in line for line in lines)

    def test_that_are_never_reached_are_told_what_was(self, debug):
        *_, line, _, elsewhere, _, name = debug(TOTAL, "shop.py:14", "shop.py:43", "totl")
        assert line == (
            "shop.py:14: the line was never reached, in 1 call of its function; the nearest line that ran is 13"
        )
        assert elsewhere.startswith("shop.py:43: no function that holds this line was called while the test ran. ")
        assert name.startswith("totl: no such function was called while the test ran. Functions of the repository ")
        assert name.endswith(": Basket.__init__ in shop.py, Basket.add in shop.py, Basket.total in shop.py, test_total"
                             " in test_shop.py")  # fmt: skip

    @pytest.mark.parametrize(
        ("test", "probe", "why"),
        [
            (GOAL, "shop.py:12: total", "line 12 of shop.py holds nothing that runs inside a function; .* is 11$"),
            (GOAL, "shop.py:2", "the nearest line that does is 3"),
            (GOAL, "odd.py:1", "the nearest line that does is 2"),
            (GOAL, "large.py:1", "large.py has 1000001 bytes, and in a file of more than 1000000 none is placed"),
            (GOAL, "shops.py:3", "there is no file shops.py"),
            (GOAL, "shop.py:11: total +", "the expression 'total \\+' of a probe cannot be read"),
            (GOAL, "what is this?", "neither PATH:LINE, nor PATH:LINE: EXPRESSION, nor the name of a function"),
            ("test_means.py::test_mean_of_nothin", "mean", f"there is no test .*; near it are {GOAL}"),
        ],
    )
    def test_that_mean_nothing_are_refused_before_anything_is_run(self, debug, test, probe, why):
        with pytest.raises(MeasureError, match=why):
            debug(test, probe)


def test_a_test_that_runs_out_of_time_tells_what_it_saw_until_then(provider, repo, base, baseline):
    with provider.at(base) as box:
        box.write("means.py", SOURCE.replace(BUG, f"    from shop import spin\n    spin()\n{BUG}").encode())
        state = box.snapshot()
    rules = rules_for(provider, task(repo), base, baseline)
    rules = replace(rules, limits=replace(rules.limits, cpu_s=0.2))
    probed = run_probes(provider, task(repo), state, base, (), GOAL, (), rules)
    assert probed.watched.error.said == "OutOfTime: ran out of time"
    (spin,) = (each for each in probed.watched.functions if each.name == "spin")
    assert spin.last.lines[-1][2]["turns"].first == ("1", "2", "3")


class TestInASearch:
    def search(self, provider, repo, folder, policy, **limits):
        self.events = []
        with Run.open(folder) as run:
            parts = Components(provider, policy, Linear(), PassingTests(), Budget(**limits), baseline_runs=1)
            return solve(task(repo, goal_tests=(GOAL,)), parts, run, on_event=self.events.append), run

    @pytest.mark.slow
    def test_it_is_told_to_the_model_counted_and_leaves_no_trace_in_the_state(self, provider, repo, tmp_path):
        edit = ("edit", {"path": "means.py", "old": BUG, "new": FIX})
        look = ("debug", {"test": GOAL, "probes": ["means.py:9: len(numbers)"]})
        model = ScriptedModel([answer("Why?", look), answer("So.", edit, look), answer("Now.", ("run_tests", {}))])
        result, run = self.search(provider, repo, tmp_path / "a", ChatPolicy(model))
        first, second = (str(model.heard[n][-1]["content"]) for n in (1, 2))
        assert "means.py:9: len(numbers): reached 1 time; values: 0" in first
        assert f"{GOAL}: passed\n" in second
        assert result.status == "solved"
        assert [each.usage.measurements for each in self.events if getattr(each, "what", "") == "debug"] == [1, 1]
        _, plain = self.search(provider, repo, tmp_path / "b", edits(FIX))
        assert run.tree[1].state_hash == plain.tree[1].state_hash

    def test_the_run_that_measures_a_state_is_not_spent_on_it(self, provider, repo, tmp_path):
        """Of three runs one is the base state's and one the state's; the third is the only one to look at values."""
        look = answer("", ("debug", {"test": GOAL}))
        model = ScriptedModel([look, look, answer("", ("run_tests", {}))])
        _, run = self.search(provider, repo, tmp_path / "c", ChatPolicy(model), max_measurements=3)
        heard = [str(each[-1]["content"]) for each in model.heard[1:]]
        assert heard[0].startswith(f"{GOAL}: failed")
        assert heard[1].startswith("Not done: no test can be run only to look at its values: the limit of measurements")
        assert run.usage.measurements <= 3


KINDS = """def mended(n):
    try:
        ratio = 1 // n
    finally:
        n = 5
    return ratio


def handled(n):
    try:
        return mended(n)
    except ZeroDivisionError:
        return None


def doubled(numbers):
    for number in numbers:
        yield 2 * number


def deep(n):
    if n == 0:
        raise KeyError("bottom")
    return deep(n - 1)


def whole():
    handled(0)
    list(doubled([1, 2]))
    deep(2)
"""


@pytest.fixture
def watched(tmp_path, values):
    """What is noted of a function of the text, which fails."""

    def watched(source, name):
        names = {}
        exec(compile(source, str(tmp_path / "code.py"), "exec"), names)
        watch, before = Watch(str(tmp_path), []), sys.gettrace()
        sys.settrace(watch.enter)
        try:
            names[name]()
        except Exception as error:
            sys.settrace(before)
            watch.learn(error)
        return first_failure([{"id": "t", **watch.facts()}])

    return watched


def test_each_kind_of_call_is_told_as_what_it_came_to(watched):
    """Of a recursion that an exception ended the call that raised it; a generator is entered again and again."""
    found = watched(KINDS, "whole")
    told = {each.name: (each.calls, dict(each.last.arguments), each.last.ended) for each in found.functions}
    assert told == {
        "mended": (1, {"n": "0"}, "raised ZeroDivisionError: integer division or modulo by zero"),
        "handled": (1, {"n": "0"}, "returned None"),
        "doubled": (1, {"numbers": "[1, 2]"}, "returned None"),
        "deep": (3, {"n": "0"}, "raised KeyError: 'bottom'"),
        "whole": (1, {}, "raised KeyError: 'bottom'"),
    }
    lines = {each.name: [(line, hits) for line, hits, _ in each.last.lines] for each in found.functions}
    assert lines["doubled"] == [(17, 3), (18, 2)]
    assert [frame.line for frame in found.error.frames] == [30, 24, 24, 23]


def test_of_a_recursion_without_end_the_first_and_the_last_calls_are_told(watched):
    found = watched("def first():\n    deeper(0)\n\n\ndef deeper(n):\n    deeper(n + 1)\n", "first")
    assert found.error.said.startswith("RecursionError: maximum recursion depth exceeded")
    assert [frame.line for frame in found.error.frames[:3]] == [2, 6, 6]
    assert found.error.left_out > 100
    calls = {each.name: each.calls for each in found.functions}
    assert calls["first"] == 1
    assert calls["deeper"] > 100


@pytest.fixture
def values():
    before = signal.getsignal(signal.SIGVTALRM)
    yield Values()
    signal.signal(signal.SIGVTALRM, before)


PLAIN = st.one_of(st.integers(), st.text(), st.binary(), st.floats(), st.none(), st.just(7**999), st.just("\n" * 500))
NESTED = st.recursive(
    PLAIN,
    lambda inner: st.one_of(st.lists(inner), st.sets(st.text()), st.dictionaries(st.text(), inner), st.tuples(inner)),
)


@settings(max_examples=50)
@given(NESTED)
def test_any_value_is_shown_in_one_short_line_and_a_short_one_as_python_has_it(value):
    shown = Values.__new__(Values).text(value)
    assert len(shown) <= VALUE_CHARACTERS
    assert "\n" not in shown
    if isinstance(value, str) and len(value) < 20:
        assert shown == repr(value)


def test_a_value_whose_code_takes_too_long_is_asked_once(values):
    class Slow:
        asked = 0

        def __repr__(self):
            Slow.asked += 1
            while True:
                pass

    assert [values.show(Slow()), values.show([Slow()])] == [
        "<Slow: it takes too long to be shown>",
        "[<Slow: it takes too long to be shown>]",
    ]
    assert Slow.asked == 1


@pytest.mark.parametrize(
    ("text", "probe"),
    [
        ("a/b.py:3", ("a/b.py", 3, "", "")),
        (" ./a.py:3: x if y else {1: 2} ", ("a.py", 3, "x if y else {1: 2}", "")),
        ("pkg.Class.method()", ("", 0, "", "pkg.Class.method")),
        ("größe", ("", 0, "", "größe")),
    ],
)
def test_a_probe_is_a_place_a_place_with_an_expression_or_a_name(text, probe):
    read = read_probe(text)
    assert (read.path, read.line, read.expression, read.name) == probe
