"""Answers that come in pieces, late, or not to their end: over real HTTP, with deadlines of fractions of a second."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from agent.budget import Usage
from agent.errors import ModelError, PolicyError, Stopped
from agent.models.deadlines import Deadlines
from agent.models.halt import Halt
from tests.clients import HELLO, TOOLS, Client, Clock, Serve
from tests.scripted_server import Reply, says

SOON_S, LATE_S = 0.3, 100.0
"""A deadline that passes in a test, and one beyond what the slowest machine takes."""
UNHURRIED = Deadlines(first_token_s=LATE_S, idle_s=LATE_S, total_s=LATE_S)
LONG = says("Some words, and some more of them.", ("view", {"path": "a.py"}), reasoning_content="because of this")
ONCE_UNKNOWN = Usage(model_calls=1, unpriced_calls=1)


def events(*data: str) -> Reply:
    """A stream as these servers send it."""
    body = "".join(f"data: {each}\n\n" for each in data).encode()
    return Reply(body, headers={"x-note": "no content type of a stream"})


def delta(text: str, more: str = "") -> str:
    return f'{{"choices": [{{"index": 0, "delta": {text}{more}}}]}}'


END = '{"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}'


class TestAStreamedAnswer:
    def test_is_the_same_as_unstreamed(self, serve: Serve, client: Client) -> None:
        reply = says(
            "half: \ud83d whole: \ud83d\ude00",
            ("view", {"path": "é.py"}),
            ("shell", "{broken"),
            cached=400,
            reasoning_content="hm, well",
            reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "hm", "signature": "c2ln"}],
        )
        price = (2.0, 10.0, 0.5)
        streamed = client(serve([reply]), price=price).complete(HELLO, TOOLS)
        whole = client(serve([reply]), price=price, stream=False).complete(HELLO, TOOLS)
        assert streamed == whole
        assert streamed.usage.tokens_cached == 400

    def test_has_the_log_probabilities_of_its_tokens_where_the_server_gives_them(
        self, serve: Serve, client: Client
    ) -> None:
        reply = says("x", logprobs=(-0.5, -0.25))
        assert client(serve([reply])).complete(HELLO).logprobs == (-0.5, -0.25)
        assert client(serve([reply]), stream=False).complete(HELLO).logprobs == (-0.5, -0.25)
        assert client(serve([says("x", logprobs=(-0.5, float("-inf")))])).complete(HELLO).logprobs == ()

    def test_is_asked_for_unless_the_settings_say_otherwise(self, serve: Serve, client: Client) -> None:
        server = serve([says("x"), says("x")])
        client(server).complete(HELLO)
        client(server, stream=False).complete(HELLO)
        assert [request.get("stream") for request in server.requests] == [True, None]

    def test_may_come_in_one_piece_all_the_same(self, serve: Serve, client: Client) -> None:
        assert client(serve([LONG.plain()])).complete(HELLO) == client(serve([LONG])).complete(HELLO)

    def test_keeps_the_connection(self, serve: Serve, client: Client) -> None:
        server = serve([says("one"), says("two")])
        model = client(server)
        model.complete(HELLO)
        model.complete(HELLO)
        assert len(set(server.connections)) == 1

    def test_needs_no_usage(self, serve: Serve, client: Client) -> None:
        assert client(serve([says("x", usage=False)])).complete(HELLO).usage == ONCE_UNKNOWN

    @pytest.mark.parametrize(
        "deltas",
        [
            # numbered, in pieces
            [
                delta('{"tool_calls": [{"index": 0, "id": "a", "function": {"name": "view", "arguments": "{"}}]}'),
                delta('{"tool_calls": [{"index": 1, "id": "b", "function": {"name": "shell", "arguments": ""}}]}'),
                delta('{"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]}'),
                delta('{"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]}'),
            ],
            # every call numbered 0
            [
                delta('{"tool_calls": [{"index": 0, "id": "a", "function": {"name": "view", "arguments": "{}"}}]}'),
                delta('{"tool_calls": [{"index": 0, "id": "b", "function": {"name": "shell", "arguments": "{}"}}]}'),
            ],
            # no numbers, and arguments that are no text
            [
                delta('{"tool_calls": [{"id": "a", "function": {"name": "view", "arguments": {}}}]}'),
                delta('{"tool_calls": [{"id": "b", "function": {"name": "shell", "arguments": {}}}]}'),
            ],
            # name and id again in every piece
            [
                delta('{"tool_calls": [{"index": 0, "id": "a", "function": {"name": "view", "arguments": "{"}}]}'),
                delta('{"tool_calls": [{"index": 0, "id": "a", "function": {"name": "view", "arguments": "}"}}]}'),
                delta('{"tool_calls": [{"index": 1, "id": "b", "function": {"name": "shell", "arguments": "{}"}}]}'),
            ],
        ],
        ids=["numbered", "all numbered 0", "not numbered", "repeated"],
    )
    def test_holds_the_calls_however_they_are_numbered(self, serve: Serve, client: Client, deltas: list[str]) -> None:
        completion = client(serve([events(*deltas, END, "[DONE]")])).complete(HELLO)
        calls = [(call.id, call.name, call.arguments) for call in completion.tool_calls]
        assert calls == [("a", "view", "{}"), ("b", "shell", "{}")]
        assert completion.finish_reason == "tool_calls"
        assert all("index" not in call for call in completion.raw["tool_calls"])

    def test_needs_no_mark_of_its_end(self, serve: Serve, client: Client) -> None:
        assert client(serve([events(delta('{"content": "x"}'), END)])).complete(HELLO).text == "x"


class TestAStreamThatFails:
    @pytest.mark.parametrize(
        "fault",
        [
            LONG.fails("cut", 5),
            LONG.fails("cut", 1),
            LONG.plain().fails("cut", 2),
            events(delta('{"content": "cut off"}')),
            events("{not json"),
            events("5"),
            events('{"error": {"message": "overloaded", "code": 503}}'),
            events('{"choices": []}', "[DONE]"),
            Reply(b""),
        ],
        ids=["cut", "cut at once", "cut in one piece", "no end", "no JSON", "no object", "error", "no choice", "empty"],
    )
    def test_is_tried_again_and_counted_as_a_call_of_unknown_price(
        self, serve: Serve, client: Client, fault: Reply
    ) -> None:
        server = serve([fault, says("at last")])
        completion = client(server, price=(2.0, 10.0, 0.5)).complete(HELLO)
        assert completion.text == "at last"
        assert (completion.usage.model_calls, completion.usage.unpriced_calls) == (2, 1)
        assert completion.usage.cost_usd == pytest.approx((1000 * 2.0 + 100 * 10.0) / 1e6)
        assert len(server.requests) == 2

    def test_costs_what_it_says_it_cost(self, serve: Serve, client: Client) -> None:
        counted = '{"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 100}}'
        server = serve([events(counted, "[DONE]"), says("at last")])
        usage = client(server, price=(2.0, 10.0, 0.5)).complete(HELLO).usage
        assert (usage.tokens_in, usage.unpriced_calls) == (2000, 0)
        assert usage.cost_usd == pytest.approx(2 * (1000 * 2.0 + 100 * 10.0) / 1e6)

    def test_for_good_says_what_its_attempts_cost(self, serve: Serve, client: Client) -> None:
        cut = LONG.fails("cut", 5)
        with pytest.raises(ModelError, match="cut off") as caught:
            client(serve([cut, cut]), retry=Clock().retry(attempts=2)).complete(HELLO)
        assert caught.value.usage == ONCE_UNKNOWN + ONCE_UNKNOWN

    def test_may_say_that_the_conversation_is_too_long(self, serve: Serve, client: Client) -> None:
        said = '{"error": {"message": "This model\'s maximum context length is 4096 tokens.", "code": 400}}'
        with pytest.raises(PolicyError, match="too long"):
            client(serve([events(said), says("never")])).complete(HELLO)


class TestADeadline:
    @pytest.mark.parametrize(
        ("reply", "setting"),
        [
            (LONG.fails("stall", 0), "model.first_token_s"),
            (LONG.fails("stall", 1), "model.first_token_s"),
            (LONG.fails("stall", 4), "model.idle_s"),
            (LONG.drips(0.02), "model.total_s"),
            (LONG.plain().drips(0.02), "model.total_s"),
        ],
        ids=["no headers", "no token", "stalled", "dripping", "dripping in one piece"],
    )
    def test_ends_the_waiting_and_its_thread(self, serve: Serve, client: Client, reply: Reply, setting: str) -> None:
        soon = replace(UNHURRIED, **{setting.removeprefix("model."): SOON_S})
        with pytest.raises(ModelError, match=setting) as caught:
            client(serve([reply]), deadlines=soon, retry=Clock().retry(attempts=1)).complete(HELLO)
        assert caught.value.usage == ONCE_UNKNOWN
        assert_no_reader()

    def test_is_the_total_one_alone_for_an_answer_in_one_piece(self, serve: Serve, client: Client) -> None:
        late = says("x").drips(0.0005)
        assert client(serve([late]), stream=False, deadlines=Deadlines(first_token_s=0.05)).complete(HELLO).text == "x"

    @pytest.mark.slow
    def test_that_has_passed_is_tried_again(self, serve: Serve, client: Client) -> None:
        server = serve([LONG.fails("stall", 4), says("at last")])
        completion = client(server, deadlines=replace(UNHURRIED, idle_s=3.0)).complete(HELLO)
        assert (completion.text, completion.usage.model_calls) == ("at last", 2)


@pytest.mark.parametrize("blocks", [0, 3], ids=["nothing has come", "some has come"])
def test_a_cancelled_run_does_not_wait_for_its_answer(serve: Serve, client: Client, blocks: int) -> None:
    halt = Halt()

    def answer(body: Any) -> Reply:
        halt.cancel.set()
        return LONG.fails("stall", blocks)

    with pytest.raises(Stopped) as caught:
        client(serve(answer), halt=halt, retry=None).complete(HELLO)
    assert caught.value.usage == ONCE_UNKNOWN
    assert_no_reader()


def assert_no_reader() -> None:
    """No thread that reads an answer goes on for long."""
    for thread in threading.enumerate():
        if thread.name == "ramify-answer":
            thread.join(timeout=60)
            assert not thread.is_alive()
