"""The edits of `mutate` in a learned order: counted from trees, or by what a served model finds likely."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, inf, log
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agent.actions import Edit
from agent.build.composition import start
from agent.config import load
from agent.errors import ConfigError, ModelError, UsageError
from agent.learning import training
from agent.models import Ask, directly
from agent.models.openai import OpenAIModel
from agent.models.scoring import AT_ONCE, ScoringModel
from agent.policy.edit.context import CHARACTERS, Context, contexts, printed_by
from agent.policy.edit.counts import SMOOTHING, Counts, count_edits
from agent.policy.edit.features import features
from agent.policy.edit.ranking import ByCounts, ByModel, Choice, MutateOrder, Together, Uniform, shares
from agent.policy.edit.ranking_options import ranking_of
from agent.policy.edit.record import Ranked
from agent.run.run import Run
from agent.search.mcts import Mcts
from benchmarks.flywheel.leaks import shown
from benchmarks.self_training.exporting import export
from tests.projects import BUG, FIX, means, task
from tests.scripted_server import Reply, ScriptedServer, fails, scores

FILE = b"""import re


@cached
def mean(numbers):
    total = sum(numbers)
    return total


class Table:
    def row(self, n):
        def inner():
            return n
        return inner
"""
CONTEXT = Context("m.py", 5, "def mean(numbers):\n    total = sum(numbers)\n    return total\n")


class TestAContext:
    def test_is_the_outermost_function_of_a_line_with_its_decorators(self) -> None:
        found = contexts("m.py", FILE, [6, 7, 13])
        assert [(each.first, each.last) for each in found] == [(4, 7), (11, 14)]
        assert found[0].text.startswith("@cached\ndef mean")

    def test_of_a_line_outside_of_functions_there_is_none(self) -> None:
        assert contexts("m.py", FILE, [1]) == []

    @pytest.mark.parametrize("data", [b"not Python at all\n", b"# \xe9\ndef f():\n    pass\n", b"def f():\n    \0\n"])
    def test_of_a_file_that_is_no_python_there_is_none(self, data: bytes) -> None:
        assert contexts("notes.txt", data, [1, 2]) == []

    def test_only_line_feeds_end_lines(self) -> None:
        text = "\x0cx = '\u2028'\n\ndef f():\n    return '\x85'\n"
        (found,) = contexts("m.py", text.encode(), [4])
        assert (found.first, found.last) == (3, 4)
        assert found.prompt == "<L1>def f():\n<L2>    return '\x85'\n<fix>\n"

    def test_is_shown_with_numbered_lines_and_variables(self) -> None:
        assert CONTEXT.prompt == ("<L1>def mean(<V1>):\n<L2>    <V2> = sum(<V1>)\n<L3>    return <V2>\n<fix>\n")

    @pytest.mark.parametrize(
        ("old", "new", "line", "action"),
        [
            ("    return total\n", "    return total / 2\n", 7, "<L3>    return <V2> / 2\n<end>"),
            ("    total = sum(numbers)\n    return total\n", "    total = sum(numbers)\n", 6, "<L3><end>"),
            ("    return total\n", "    total += 1\n    return total\n", 7, "<L3><0>    <V2> += 1\n<end>"),
        ],
    )
    def test_writes_an_edit_as_the_number_of_its_line_and_what_stands_there(
        self, old: str, new: str, line: int, action: str
    ) -> None:
        assert CONTEXT.action([Edit("m.py", old, new, line)]) == action

    def test_shows_what_tests_printed_after_the_function(self) -> None:
        shown = replace(CONTEXT, printed="test_a: assert 1 == 2\n+ where\n")
        lines = "<printed>test_a: assert 1 == 2\n<printed>+ where\n<fix>\n"
        assert shown.prompt == CONTEXT.prompt.removesuffix("<fix>\n") + lines
        assert Context.from_json(shown.to_json()) == shown

    def test_without_what_tests_printed_is_recorded_as_before_there_was_any(self) -> None:
        assert CONTEXT.to_json() == {"path": "m.py", "first": 5, "text": CONTEXT.text}

    def test_holds_edits_of_its_own_lines_alone(self) -> None:
        inside, behind = Edit("m.py", "x\n", "y\n", 7), Edit("m.py", "x\n", "y\n", 8)
        assert CONTEXT.holds([inside])
        assert not CONTEXT.holds([inside, behind])
        assert not CONTEXT.holds([Edit("other.py", "x\n", "y\n", 7)])


PYTEST = """test_m.py:3: in test_f
    assert f(3) == (7, 6)
E   AssertionError: assert (6, 6) == (7, 6)
E
E     At index 0 diff: 6 != 7
E     Use -v to get more diff"""
PYTHON = """Traceback (most recent call last):
  File "/x/_pytest/runner.py", line 361, in from_call
    result = func()
  File "test_m.py", line 3, in test_f
    assert f(3) == (7, 6)
AssertionError: assert (6, 6) == (7, 6)

  At index 0 diff: 6 != 7
  Use -v to get more diff"""


class TestWhatTestsPrinted:
    @pytest.mark.parametrize("message", [PYTEST, PYTHON])
    def test_is_the_error_that_ended_each_failing_test(self, message: str) -> None:
        found = printed_by({"test_m.py::test_f": message, "test_m.py::test_g": "E   KeyError"}, ["test_m.py::test_f"])
        assert found == "test_f: AssertionError: assert (6, 6) == (7, 6)\nAt index 0 diff: 6 != 7\n"

    def test_is_that_of_the_first_tests_whatever_their_order(self) -> None:
        messages = {f"m.py::test_{name}": f"E   ValueError: {name}" for name in "edcba"}
        found = printed_by(messages, list(messages))
        assert found == "".join(f"test_{name}: ValueError: {name}\n" for name in "abc")

    def test_of_a_test_without_a_message_is_its_name(self) -> None:
        assert printed_by({}, ["m.py::test_a"]) == "test_a:\n"

    def test_is_short_and_has_no_addresses_or_control_sequences(self) -> None:
        said = ["E   \x1b[31mTypeError: <X object at 0x7f00aa>\x1b[0m \u202e", *(f"E   {n}" for n in range(9))]
        lines = printed_by({"t": "\n".join(said)}, ["t"]).splitlines()
        assert lines == ["t: TypeError: <X object> \\u202e", *map(str, range(5))]
        [line] = printed_by({"t": "E   " + "x" * 999}, ["t"]).splitlines()
        assert len(line) == CHARACTERS


@pytest.mark.parametrize(
    ("old", "new", "change", "statement"),
    [
        ("    if a < b:\n", "    if a <= b:\n", "< -> <=", "if"),
        ("    x = f(a)\n", "    x = f(b)\n", "name -> name", "assignment"),
        ("    return x + 17\n", "    return x\n", "+ number -> nothing", "return"),
        ("    g(x)\n", "", "name ( name ) -> nothing", "expression"),
        ("    return min(x)  # least\n", "    return max(x)\n", "min -> max", "return"),
    ],
)
def test_features_say_what_is_changed_to_what_and_where(old: str, new: str, change: str, statement: str) -> None:
    found = features([Edit("m.py", old, new, 1)], 0.25)
    assert f"change:{change}" in found
    assert f"statement:{statement}" in found
    assert "likely:2" in found


class TestCounts:
    COUNTS = Counts(98, 9, {"change:< -> <=": (20, 8), "statement:if": (50, 5)})
    EDIT = Edit("m.py", "if a < b:\n", "if a <= b:\n", 1)

    def test_a_weight_is_the_smoothed_share_of_each_feature_by_the_usual_one(self) -> None:
        usual = 10 / 100
        known = [(8 + SMOOTHING * usual) / (20 + SMOOTHING), (5 + SMOOTHING * usual) / (50 + SMOOTHING)]
        assert self.COUNTS.weight([self.EDIT], 1.0) == pytest.approx(sum(log(each / usual) for each in known))

    def test_an_unknown_kind_of_edit_is_neither_likelier_nor_less(self) -> None:
        assert self.COUNTS.weight([Edit("m.py", "x\n", "", 1)], 1.0) == 0

    def test_are_read_as_they_were_written(self, tmp_path: Path) -> None:
        self.COUNTS.write(tmp_path / "counts.json")
        assert Counts.read(tmp_path / "counts.json") == self.COUNTS

    def test_a_file_of_something_else_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "x.json").write_text('{"by": 3}')
        with pytest.raises(ConfigError, match=r"x\.json holds no counts of edits"):
            Counts.read(tmp_path / "x.json")


class TestRankings:
    EDITS = (Edit("m.py", "    return total\n", "    return total / 2\n", 7),)

    def choices(self, count: int = 4) -> list[Choice]:
        return [Choice(self.EDITS, 0.5, CONTEXT) for _ in range(count)]

    def test_a_uniform_order_is_drawn_by_the_generator(self) -> None:
        first, again, other = (Uniform().weights(self.choices(), directly, Random(seed)) for seed in (1, 1, 2))
        assert first == again != other

    def test_counts_put_edits_first_that_were_right_more_often(self) -> None:
        good = Choice((TestCounts.EDIT,), 1.0, None)
        weights = ByCounts(TestCounts.COUNTS).weights([*self.choices(1), good], directly, Random(0))
        assert weights[1] > weights[0]

    @pytest.mark.parametrize("weights", [[0.0, 0.0], [-1e6, -1e6 + log(3)], [-inf, 0.0], [-inf, -inf], []])
    def test_shares_are_parts_of_one(self, weights: list[float]) -> None:
        found = shares(weights)
        assert len(found) == len(weights)
        assert sum(found) == pytest.approx(1.0 if any(each > -inf for each in weights) else 0.0)

    def test_a_model_decides_in_a_function_and_localisation_among_functions(self, key: None) -> None:
        other = Context("m.py", 20, "def g():\n    return 1\n")
        edit = (Edit("m.py", "    return 1\n", "    return 2\n", 21),)
        choices = [Choice(self.EDITS, 0.6, CONTEXT), Choice(edit, 0.1, other), Choice(edit, 0.1, other)]
        with ScriptedServer(lambda asked: scores(asked, lambda text: -9.0 if "mean" in text else -1.0)) as server:
            ranking = ByModel(ScoringModel(OpenAIModel("openai/tiny", base_url=server.url)))
            found = ranking.weights([*choices, Choice(edit, 0.9, None)], directly, Random(0))
        assert [exp(each) for each in found] == pytest.approx([0.6, 0.1, 0.1, 0.0])
        assert len(server.requests) == 2

    def test_rankings_that_go_together_multiply_what_each_finds_likely(self) -> None:
        choices = [Choice(self.EDITS, likely, None) for likely in (0.8, 0.4, 0.2)]
        both = Together((MutateOrder(), MutateOrder("again")))
        parts = [(0.5 / 3 + 0.5 * part / 7) ** 2 for part in (4, 2, 1)]
        wanted = [each / sum(parts) for each in parts]
        assert shares(both.weights(choices, directly, Random(0))) == pytest.approx(wanted)
        assert both.version == "mutate+again"

    def test_one_ranking_that_is_sure_and_wrong_does_not_overrule_the_order_of_another(self) -> None:
        choices = [Choice(self.EDITS, likely, None) for likely in (1e-6, 0.1, 0.2, 0.7)]
        both = Together((MutateOrder(), Sure([0.0, -30.0, -20.0, -40.0])))
        found = both.weights(choices, directly, Random(0))
        assert found[3] > found[2] > found[1]

    def test_where_one_ranking_can_weigh_nothing_the_others_decide(self) -> None:
        choices = [Choice(self.EDITS, likely, None) for likely in (0.05, 0.9, 0.04)]
        found = Together((MutateOrder(), Sure([-inf] * 3))).weights(choices, directly, Random(0))
        assert found[1] > found[0] > found[2]

    def test_edits_of_a_function_that_is_too_long_for_the_model_come_last(self, key: None) -> None:
        other = Context("m.py", 20, "def g():\n    return 1\n")
        edit = (Edit("m.py", "    return 1\n", "    return 2\n", 21),)
        refused = fails(400, "This model's maximum context length is 9 tokens.")
        with ScriptedServer(lambda asked: refused if "mean" in asked["prompt"][0] else scores(asked, len)) as server:
            ranking = ByModel(ScoringModel(OpenAIModel("openai/tiny", base_url=server.url)))
            choices = [Choice(self.EDITS, 0.9, CONTEXT), Choice(edit, 0.1, other)]
            assert ranking.weights(choices, directly, Random(0)) == [-inf, pytest.approx(log(0.1))]


@dataclass
class Sure:
    """A ranking that says this."""

    said: list[float]
    version: str = "sure"

    def weights(self, choices: Sequence[Choice], ask: Ask, rng: Random) -> Sequence[float]:
        return self.said


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


@pytest.mark.usefixtures("key")
class TestScoring:
    def ask(self, server: ScriptedServer, *texts: str) -> tuple[float, ...]:
        model = ScoringModel(OpenAIModel("openai/tiny", base_url=server.url))
        try:
            return directly(model, [{"role": "user", "content": "abc"}], texts=texts).logprobs
        finally:
            model.close()

    def test_sums_the_tokens_of_each_text_and_none_of_the_prompt(self) -> None:
        with ScriptedServer(lambda asked: scores(asked, lambda text: -float(len(text)))) as server:
            assert self.ask(server, "x", "yz") == (-4.0, -5.0)
        assert server.requests[0]["prompt"] == ["abcx", "abcyz"]

    def test_asks_in_parts_of_a_size_that_a_server_takes(self) -> None:
        with ScriptedServer(lambda asked: scores(asked, lambda text: -1.0)) as server:
            assert len(self.ask(server, *["x"] * (AT_ONCE + 1))) == AT_ONCE + 1
        assert [len(each["prompt"]) for each in server.requests] == [AT_ONCE, 1]

    @pytest.mark.parametrize(
        "logprobs",
        [
            None,
            {"tokens": ["t"], "token_logprobs": [-1.0], "text_offset": [0]},
            {"tokens": ["t"], "token_logprobs": [-1.0], "text_offset": [4]},
        ],
    )
    def test_a_server_that_does_not_echo_is_an_error_that_says_so(self, logprobs: object) -> None:
        """Also one that tells the log-probabilities of an answer of its own."""
        answer = {"choices": [{"index": 0, "text": "t", "logprobs": logprobs}]}
        said = pytest.raises(ModelError, match="no log-probabilities of a prompt")
        with ScriptedServer(lambda asked: Reply(json.dumps(answer).encode())) as server, said:
            self.ask(server, "x")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"by": "luck"}, "policy.by=luck: give mutate, uniform, counts"),
        ({"by": "counts"}, "with policy.counts=FILE"),
        ({"by": "model"}, "with policy.model=NAME"),
        ({"by": "mutate+counts"}, "policy.by=mutate\\+counts"),
    ],
)
def test_a_ranking_that_does_not_exist_or_lacks_something_is_refused(options: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ranking_of(options, lambda name: pytest.fail(name))


def test_several_rank_together_where_their_names_are_joined(tmp_path: Path) -> None:
    Counts(4, 2, {}).write(tmp_path / "counts.json")
    ranking, others = ranking_of({"by": "counts+mutate", "counts": tmp_path / "counts.json", "width": 3}, pytest.fail)
    assert ranking.version == f"counts@{Counts(4, 2, {}).digest}+mutate"
    assert others == {"width": 3}


def test_mutate_ranks_with_whatever_else_is_named_unless_it_is_said_who_ranks(tmp_path: Path) -> None:
    Counts(4, 2, {}).write(tmp_path / "counts.json")
    counts = {"counts": tmp_path / "counts.json"}
    versions = [ranking_of(options, pytest.fail)[0].version for options in ({}, counts, counts | {"by": "counts"})]
    alone = f"counts@{Counts(4, 2, {}).digest}"
    assert versions == ["mutate", f"{alone}+mutate", alone]


@pytest.mark.slow
@pytest.mark.namespace
def test_a_search_goes_by_the_model_and_its_tree_can_be_counted(namespaces: Path, tmp_path: Path, key: None) -> None:
    """The server likes the right edit; what it said is recorded, and is what later searches count."""
    liked = FIX.strip().replace("numbers", "<V1>")
    with ScriptedServer(lambda asked: scores(asked, lambda text: -1.0 if liked in text else -30.0)) as server:
        flags = {
            "policy.name": "edit",
            "policy.model": "openai/tiny",
            "policy.by": "model",
            "policy.width": 40,
            "search.name": "mcts",
            "search.formula": "puct",
            "model.base_url": server.url,
            "sandbox.kind": "namespace",
            "budget.max_nodes": 30,
        }
        result = start(task(means(tmp_path / "repo")), load(flags=flags), tmp_path / "run")
    assert result.status == "solved"
    assert result.usage.model_calls == len(server.requests) == 1
    with Run.read(tmp_path / "run") as run:
        first = run.tree[run.tree.attempts(0)[0].child]
        assert run.solved(first.id)
        assert Mcts("puct").terms(run.tree, first.id, first.prior)["prior"] == first.prior > 0.9
        assert first.policy_id == "edit/1/openai/tiny"
        ranked = Ranked.of(run, 0)
        assert ranked is not None
        assert BUG in ranked.contexts[0].text
        counts = count_edits([run])
    assert (counts.tried, counts.right, counts.runs) == (1, 1, 1)
    assert counts.by["change:< -> <="] == (1, 1)
    assert counts.policies == ("edit/1/openai/tiny",)


@pytest.mark.slow
@pytest.mark.namespace
def test_a_model_and_its_rows_are_shown_what_the_failing_tests_print(
    namespaces: Path, tmp_path: Path, key: None
) -> None:
    """The server likes the right edit only where it is told what the test printed."""
    error = "<printed>test_mean_of_nothing: ZeroDivisionError: division by zero\n<fix>\n"
    liked = FIX.strip().replace("numbers", "<V1>")
    rows = dict[bool, list[Any]]()
    for printed in (True, False):
        run, out = tmp_path / f"run-{printed}", tmp_path / f"rows-{printed}"
        with ScriptedServer(
            lambda asked: scores(asked, lambda text: -1.0 if liked in text and error in text else -30.0)
        ) as server:
            flags = {
                "policy.name": "edit",
                "policy.model": "openai/tiny",
                "policy.by": "model",
                "policy.printed": printed,
                "policy.width": 40,
                "search.name": "best_first",
                "model.base_url": server.url,
                "sandbox.kind": "namespace",
                "budget.max_nodes": 41,
            }
            assert start(task(means(tmp_path / f"repo-{printed}")), load(flags=flags), run).status == "solved"
        assert all((error in prompt) == printed for prompt in server.requests[0]["prompt"])
        with Run.read(run) as read:
            assert (len(read.tree) == 2) == printed
        export([run], "edit", out, near=None)
        rows[printed] = [json.loads(line) for line in (out / "train.jsonl").open()]
    [told], [bare] = rows[True], rows[False]
    assert told["prompt"][0]["content"] == bare["prompt"][0]["content"].removesuffix("<fix>\n") + error
    assert told["completion"] == bare["completion"]
    assert told["provenance"]["policies"] == ["edit/1/openai/tiny/printed"]
    assert shown(told) == shown(bare) is not None
    with pytest.raises(UsageError, match="edit/1/openai/tiny/printed"):
        training.plan("sft", [tmp_path / "rows-True", tmp_path / "rows-False"], training.TrainingSettings())
