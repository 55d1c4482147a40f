"""What a model is asked is paid for once, recorded whole at the cost of what is new, and read back as it was."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.actions import Observation, View, schema
from agent.budget import Budget, BudgetSpent, Stop, Usage
from agent.engine.model_calls import Forecast, ModelGateway, Request
from agent.engine.recorder import Recorder
from agent.errors import ModelError
from agent.measure import SuiteReport
from agent.models import Completion, Message
from agent.models.prices import Price
from agent.models.warming import KEPT_S
from agent.policy.chat.transcript import pack
from agent.run.events import Added, Asked, Refused
from agent.run.journal import decode, encode
from agent.run.message_store import Conversations, digest_of
from agent.run.run import Run
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Node, Step
from sandboxes import Snapshot
from tests.scripted import ScriptedModel, answer

VALUES = st.one_of(
    st.sampled_from([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}, [], [{"name": "view"}]]),
    st.dictionaries(st.text(max_size=3), st.text(max_size=3) | st.none() | st.integers(), max_size=2),
)
CONVERSATIONS = st.lists(VALUES, max_size=6)


def user(text):
    return {"role": "user", "content": text}


class TestAConversation:
    @settings(max_examples=150, deadline=None)
    @given(conversations=st.lists(CONVERSATIONS, max_size=8), data=st.data())
    def test_of_any_set_recorded_in_any_order_reads_back_equal(self, conversations, data):
        written, journal = Conversations(), []
        for conversation in data.draw(st.permutations(conversations)):
            passage = written.shorten(conversation)
            journal.append((json.dumps([passage.digest, passage.after, passage.new]), conversation))
            written.learn(passage)
        read = Conversations()
        for line, conversation in journal:
            digest, after, new = json.loads(line)
            read.learn(type(passage)(digest, after, tuple(new)))
            assert list(read.whole(digest)) == conversation == list(written.whole(digest))

    @given(values=CONVERSATIONS)
    def test_that_is_known_costs_nothing_and_one_that_goes_on_costs_what_is_new(self, values):
        known = Conversations()
        known.learn(known.shorten(values))
        assert known.shorten(values).new == ()
        longer = known.shorten([*values, {"new": True}])
        assert (longer.after, longer.new) == (known.shorten(values).digest, ({"new": True},))

    def test_that_was_changed_in_the_middle_names_what_it_keeps(self):
        known = Conversations()
        known.learn(known.shorten([user("1"), user("2" * 999), user("3")]))
        changed = known.shorten([user("1"), user("elided"), user("3"), user("2" * 999)])
        assert changed.new == (user("elided"), digest_of(user("3")), digest_of(user("2" * 999)))

    def test_that_nobody_recorded_is_a_key_error(self):
        with pytest.raises(KeyError):
            Conversations().whole("ab")

    def test_has_the_same_digest_whatever_the_order_of_its_keys(self):
        assert digest_of({"a": 1, "b": [{"c": 2, "d": 3}]}) == digest_of({"b": [{"d": 3, "c": 2}], "a": 1})


@pytest.fixture
def session(tmp_path):
    """Opens the run and asks on its behalf; a second call is a second session."""
    opened = []

    def session(**limits):
        while opened:
            opened.pop().close()
        run = Run.open(tmp_path / "run")
        opened.append(run)
        budget = Budget(**limits)
        budget.start(spent=run.usage, nodes=0, elapsed_s=0.0)
        return run, ModelGateway(Recorder(run, budget))

    yield session
    while opened:
        opened.pop().close()


class TestACall:
    def test_is_recorded_with_all_that_its_answer_depends_on_and_what_it_cost(self, session):
        run, asker = session()
        said = Completion("yes", usage=Usage(model_calls=1, tokens_in=7, cost_usd=0.5), raw={"role": "assistant"})
        tools = [{"type": "function", "function": {"name": "view"}}]
        got = asker.at(3, "policy")(ScriptedModel([said], "m"), [user("?")], tools, seed=5)
        assert got == said
        (event,) = run.journal.events()
        assert isinstance(event, Asked)
        assert (event.model, event.sampling, event.answer, event.node, event.purpose) == (
            "m",
            {"seed": 5},
            said,
            3,
            "policy",
        )
        assert run.conversations.whole(event.conversation.digest) == (tools, user("?"))
        assert event.request == Request("m", (user("?"),), tuple(tools), {"seed": 5}).digest(event.conversation.digest)
        assert run.usage == said.usage

    def test_stores_an_answer_once_however_often_it_is_sent_back(self, session, tmp_path):
        run, asker = session()
        long = answer("x" * 10_000, ("view", {"path": "y" * 10_000}))
        asker.at(0, "")(ScriptedModel([long]), [user("?")])
        before = run.journal.path.stat().st_size
        for n in range(3):
            asker.at(0, "")(ScriptedModel([answer()]), [user("?"), long.message, user(str(n))])
        assert run.journal.path.stat().st_size - before < 3000

    def test_that_fails_costs_nothing_and_leaves_room_for_another(self, session):
        run, asker = session(max_calls=1)
        with pytest.raises(ModelError):
            asker.at(0, "")(ScriptedModel([]), [user("?")])
        asker.at(0, "")(ScriptedModel([answer()]), [user("?")])
        assert run.usage.model_calls == 1

    def test_that_an_earlier_session_paid_for_is_not_paid_for_again(self, session):
        _, asker = session()
        asker.at(0, "")(ScriptedModel([answer("first"), answer("second")]), [user("?")], seed=1)
        run, asker = session(max_calls=2)
        model = ScriptedModel([answer("other seed"), answer("once more")])
        assert asker.at(0, "")(model, [user("?")], seed=1).text == "first"
        assert asker.at(0, "")(model, [user("?")], seed=2).text == "other seed"
        assert len(run.asked) == run.usage.model_calls == 2
        with pytest.raises(BudgetSpent):
            asker.at(0, "")(model, [user("?")], seed=1)

    def test_is_refused_before_it_is_made_where_its_estimate_does_not_fit(self, session):
        _, asker = session(max_tokens=2000)
        model = ScriptedModel(lambda heard: Completion("", usage=Usage(model_calls=1, tokens_in=1500, tokens_out=100)))
        asker.at(0, "")(model, [user("?")])
        asker.at(0, "")(model, [user("?")], max_tokens=50)
        with pytest.raises(BudgetSpent) as refused:
            asker.at(0, "")(model, [user("?" * 1200)], max_tokens=5)
        assert refused.value.stop is Stop.TOKENS
        assert len(model.heard) == 2

    def test_is_estimated_in_dollars_by_the_dearest_before_it(self, session):
        _, asker = session(max_usd=1.0)
        said = Completion("", usage=Usage(model_calls=1, tokens_in=10, tokens_out=10, cost_usd=0.8))
        asker.at(0, "")(ScriptedModel([said], "dear"), [user("?")])
        with pytest.raises(BudgetSpent) as refused:
            asker.at(0, "")(ScriptedModel([said], "dear"), [user("?")])
        assert refused.value.stop is Stop.COST
        asker.at(0, "")(ScriptedModel([said], "unknown"), [user("?")])

    def test_is_estimated_in_dollars_by_the_price_before_the_first_answer(self, session):
        _, asker = session(max_usd=1.0)
        dear = ScriptedModel(lambda heard: answer(), price=Price(0.0, 1000.0))
        with pytest.raises(BudgetSpent) as refused:
            asker.at(0, "")(dear, [user("?")], max_tokens=1001)
        assert refused.value.stop is Stop.COST
        assert not dear.heard
        asker.at(0, "")(dear, [user("?")], max_tokens=1000)

    @pytest.mark.parametrize("cached", [100, 0])
    def test_near_the_limit_of_dollars_fits_where_its_beginning_is_cached(self, session, cached):
        """A prompt of 30,000 characters is taken for 10,000 tokens: 10 cents, or 1 from a cache."""
        long, tools, price = [user("x" * 30_000)], [{"name": "view"}], Price(10.0, 0.0, 1.0)
        usage = Usage(1, 10_000, 1, cached, cost_usd=((10_000 - cached) * 10.0 + cached * 1.0) / 1e6)
        _, asker = session(max_usd=0.15)
        model = ScriptedModel([Completion("", usage=usage)] * 2, "m", price)
        ask = asker.at(0, "")
        ask(model, long, tools, max_tokens=1)
        with nullcontext() if cached else pytest.raises(BudgetSpent):
            ask(model, [*long, user("more")], tools, max_tokens=1)
        assert len(model.heard) == (2 if cached else 1)

    def test_of_many_workers_never_exceeds_the_limit_of_calls(self, session):
        run, asker = session(max_calls=5)
        together = threading.Barrier(8)
        model = ScriptedModel(lambda heard: answer())

        def work(number):
            together.wait()
            try:
                asker.at(0, "")(model, [user(str(number))])
            except BudgetSpent:
                return 0
            return 1

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(work, range(8))) == 5
        assert run.usage.model_calls == len(model.heard) == 5


class Foreseen:
    """A forecast of conversations with one model, which costs 10 dollars per million tokens, and 1 from a cache."""

    def __init__(self):
        self.time = 0.0
        self.forecast = Forecast(lambda: self.time)
        self.known = Conversations()
        self.price = Price(10.0, 20.0, 1.0, 12.5)

    def request(self, messages, tools=({"name": "view"},), model="m"):
        return Request(model, tuple(messages), tuple(tools), {"max_tokens": 10})

    def dollars(self, *asked, price=None, **changes):
        request = self.request(*asked, **changes)
        passage = self.known.shorten(request.conversation)
        return self.forecast.of(request, passage, price or self.price).cost_usd

    def answer(self, *asked, cached=5, dollars=0.0, **changes):
        request = self.request(*asked, **changes)
        passage = self.known.shorten(request.conversation)
        self.known.learn(passage)
        usage = Usage(1, 1000, 10, cached, dollars)
        self.forecast.answered(request, usage, self.known.beginnings(passage.digest), self.price)


LONG, MORE = [user("x" * 30_000), user("y" * 30_000)], user("more")


class TestAForecast:
    def test_takes_what_was_sent_just_now_for_cached(self):
        seen = Foreseen()
        whole = seen.dollars([*LONG, MORE])
        seen.answer(LONG)
        assert seen.dollars([*LONG, MORE]) < whole / 10
        assert whole / 2 < seen.dollars([LONG[0], MORE, LONG[1]]) + seen.dollars([LONG[0]]) < whole

    def test_takes_nothing_for_cached_that_a_provider_may_not_have(self):
        seen = Foreseen()
        whole = seen.dollars([*LONG, MORE])
        seen.answer(LONG, cached=0)
        assert seen.dollars([*LONG, MORE]) == whole, "it was not seen to cache"
        seen.answer(LONG)
        assert seen.dollars([*LONG, MORE], model="other") == whole
        assert seen.dollars([*LONG, MORE], tools=()) == pytest.approx(whole, rel=0.01), "it begins otherwise"
        seen.answer(LONG, tools=(), cached=0)
        assert seen.dollars([*LONG, MORE], tools=()) == pytest.approx(whole, rel=0.01), "such questions are not cached"
        seen.time = KEPT_S
        assert seen.dollars([*LONG, MORE]) == whole

    def test_counts_bytes_since_a_token_of_another_script_has_fewer_characters(self):
        seen = Foreseen()
        assert seen.dollars([user("\u4e16" * 30_000)]) > 2 * seen.dollars([user("x" * 30_000)])

    def test_without_a_price_for_what_is_cached_prices_all_alike(self):
        seen = Foreseen()
        whole = seen.dollars(LONG, price=Price(10.0, 20.0))
        seen.answer(LONG)
        assert seen.dollars(LONG, price=Price(10.0, 20.0)) == whole

    def test_is_dearer_where_calls_were_dearer_than_their_price(self):
        seen = Foreseen()
        by_price = seen.dollars([MORE])
        seen.answer(LONG, cached=0, dollars=2 * (1000 * 12.5 + 10 * 20.0) / 1e6)
        assert seen.dollars([MORE]) == pytest.approx(2 * by_price)

    @given(
        sizes=st.lists(st.integers(0, 9000), min_size=1, max_size=6),
        sent=st.lists(st.integers(1, 6), max_size=4),
        seconds=st.floats(0, 2 * KEPT_S),
    )
    def test_is_never_less_than_a_call_costs_whose_known_beginning_was_cached(self, sizes, sent, seconds):
        """A token has four characters or more; what was sent is cached, and written to the cache where it is not."""
        seen, messages = Foreseen(), [user("x" * size) for size in sizes]
        whole = seen.dollars(messages)
        for length in sent:
            seen.answer(messages[:length])
        seen.time = seconds
        foreseen = seen.dollars(messages)
        parts = [len(str(part)) / 4 for part in ([{"name": "view"}], *messages)]
        known = 1 + min(max(sent), len(messages)) if sent and seconds < KEPT_S else 0
        costs = (sum(parts[:known]) * 1.0 + sum(parts[known:]) * 12.5 + 10 * 20.0) / 1e6
        assert costs <= foreseen <= whole


def grow(directory: Path, turns: Sequence[int], result_bytes: int) -> tuple[list[int], list[int]]:
    """Take turns on one branch in a new run. Returns the bytes of the journal and of all requests after each number of
    turns."""
    model = ScriptedModel(lambda heard: answer("I look further.", ("view", {"path": f"pkg/{len(heard):05}.py"})))
    sizes, whole, requests = list[int](), list[int](), 0
    messages: list[Message] = [{"role": "system", "content": "s" * 2000}, {"role": "user", "content": "issue" * 400}]
    with Run.open(directory) as run:
        asker = ModelGateway(Recorder(run, Budget()))
        for turn in range(max(turns)):
            requests += len(json.dumps([schema(), messages]))
            said = asker.at(turn, "policy")(model, messages, schema(), seed=10**9 + turn)
            printed = f"{turn:05}".ljust(result_bytes, "x")
            step = Step((View(f"pkg/{len(messages):05}.py"),), (Observation(printed),), pack((), said.message))
            state = Snapshot(f"{turn:064}", f"{turn:064}")
            parents = (turn - 1,) if turn else ()
            run.record(Added(Node(turn, parents, (step,), state, SuiteReport(), Evaluation(0.5))))
            result = {"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": printed}
            messages += [said.message, result]
            if turn + 1 in turns:
                sizes.append(run.journal.path.stat().st_size)
                whole.append(requests)
    return sizes, whole


def test_two_hundred_turns_of_one_branch_take_four_times_the_bytes_of_fifty(tmp_path):
    (fifty, two_hundred), whole = grow(tmp_path / "run", (50, 200), 500)
    assert two_hundred <= 4.1 * fifty
    assert whole[1] > 12 * whole[0]
    with Run.read(tmp_path / "run") as run:
        assert len(run.conversations.whole(run.asked[-1].conversation.digest)) == 1 + 2 + 2 * 199


def test_an_event_of_a_call_reads_back_as_it_was_written():
    known = Conversations()
    passage = known.shorten([[], user("\udcff\u2028")])
    event = Asked("m", "ab", passage, {"seed": 1}, answer("t", ("view", {})), None, "value")
    assert decode(encode(event)) == event
    refused = Refused("m", "ab", passage, {}, "TooLong", "8192 tokens at most", 3, "policy")
    assert decode(encode(refused)) == refused
