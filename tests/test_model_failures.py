"""A model's failures over real HTTP: what is tried again, when, and what is not."""

from __future__ import annotations

import logging
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate

import pytest

from agent.budget import Usage
from agent.errors import ConfigError, ModelError, PolicyError, Stopped
from agent.models.halt import Halt
from agent.models.litellm import LiteLLMModel
from agent.models.openai import OpenAIModel
from agent.models.pace import pace_of
from agent.models.retry import wait_asked_for
from tests.clients import HELLO, KEY, Client, Clock, Serve
from tests.scripted_server import Reply, ScriptedServer, fails, says


class TestAFailureThatMayPass:
    @pytest.mark.parametrize(
        "fault",
        [
            fails(408),
            fails(409),
            fails(429),
            fails(500),
            fails(503),
            Reply(b"<html>Bad gateway</html>", 502),
            Reply(b"{not json"),
            Reply(b'{"choices": []}'),
            Reply(b'{"error": {"message": "overloaded"}}'),
            Reply(b"null"),
        ],
        ids=lambda reply: f"{reply.status} {reply.body[:12]!r}",
    )
    def test_is_tried_again(self, serve: Serve, client: Client, fault: Reply) -> None:
        server = serve([fault, fault, says("at last")])
        assert client(server).complete(HELLO).text == "at last"
        assert len(server.requests) == 3

    def test_ends_in_an_error_after_so_many_attempts_and_no_more(self, serve: Serve, client: Client) -> None:
        server = serve([fails(500, "boom")] * 9)
        with pytest.raises(ModelError, match=r"boom.*3 attempts"):
            client(server, retry=Clock().retry(attempts=3)).complete(HELLO)
        assert len(server.requests) == 3

    def test_waits_longer_each_time(self, serve: Serve, client: Client) -> None:
        clock = Clock()
        client(serve([*[fails(500)] * 7, says("x")]), retry=clock.retry(most_s=8.0)).complete(HELLO)
        assert len(clock.asked) == 7
        for wait_s, most_s in zip(clock.asked, (1, 2, 4, 8, 8, 8, 8), strict=True):
            assert most_s / 2 <= wait_s <= most_s

    def test_waits_as_long_as_the_provider_asks(self, serve: Serve, client: Client) -> None:
        clock = Clock()
        client(serve([fails(429, retry_after="20"), says("x")]), retry=clock.retry()).complete(HELLO)
        assert 20 <= clock.asked[0] <= 21

    def test_ends_at_once_when_the_provider_asks_for_too_long_a_wait(self, serve: Serve, client: Client) -> None:
        clock = Clock()
        with pytest.raises(ModelError, match="3600 s"):
            client(serve([fails(429, retry_after="3600")]), retry=clock.retry()).complete(HELLO)
        assert clock.asked == []

    @pytest.mark.parametrize(
        ("headers", "seconds"),
        [
            ({}, None),
            ({"retry-after": "7"}, 7.0),
            ({"retry-after": "0.5"}, 0.5),
            ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
            ({"retry-after": formatdate(1030, usegmt=True)}, 30.0),
            ({"retry-after": formatdate(900, usegmt=True)}, 0.0),
            ({"retry-after": "soon"}, None),
        ],
    )
    def test_tells_its_wait_in_seconds_or_as_a_date(self, headers: dict[str, str], seconds: float | None) -> None:
        assert wait_asked_for(headers, now=lambda: 1000.0) == seconds

    def test_may_be_a_server_that_has_answered_and_is_gone(
        self, serve: Serve, client: Client, caplog: pytest.LogCaptureFixture
    ) -> None:
        clock = Clock()
        with ScriptedServer([says("x")]) as server:
            model = client(server, retry=clock.retry(attempts=2))
            model.complete(HELLO)
        with pytest.raises(ModelError, match=r"openai/tiny.*2 attempts") as caught:
            model.complete(HELLO)
        assert len(clock.asked) == 1
        assert caught.value.usage == Usage()
        [shown] = [each.getMessage() for each in caplog.records if each.name == "agent.models.retry"]
        assert re.fullmatch(r"openai/tiny: .*; attempt 2 of 2 in .* s", shown)


class TestAFailureForGood:
    @pytest.mark.parametrize("interface", [OpenAIModel, LiteLLMModel])
    def test_is_a_server_that_refuses_the_first_connection(
        self, monkeypatch: pytest.MonkeyPatch, interface: type[OpenAIModel | LiteLLMModel]
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        with socket.create_server(("127.0.0.2", 0)) as closed:
            address = f"http://127.0.0.2:{closed.getsockname()[1]}"
        clock = Clock()
        model = interface("openai/tiny", base_url=f"{address}/v1", retry=clock.retry())
        with pytest.raises(ModelError, match=f"no connection to {address}: .*refused; .*model.base_url"):
            model.complete(HELLO)
        model.close()
        assert clock.asked == []

    @pytest.mark.parametrize(
        ("fault", "error"),
        [
            (fails(400, "bad request"), ModelError),
            (fails(401), ModelError),
            (fails(402), ModelError),
            (fails(403), ModelError),
            (fails(404, "no such model"), ConfigError),
            (fails(429, "You exceeded your current quota", code="insufficient_quota"), ModelError),
            (fails(400, "too long", code="context_length_exceeded"), PolicyError),
            (fails(400, "This model's maximum context length is 4096 tokens."), PolicyError),
        ],
        ids=lambda value: str(value.status) if isinstance(value, Reply) else value.__name__,
    )
    def test_is_not_tried_again(self, serve: Serve, client: Client, fault: Reply, error: type[Exception]) -> None:
        server = serve([fault, says("never")])
        with pytest.raises(error, match="openai/tiny"):
            client(server).complete(HELLO)
        assert len(server.requests) == 1

    def test_does_not_quote_the_key(self, serve: Serve, client: Client, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        server = serve([fails(500, f"crashed on {KEY}"), fails(401, f"Incorrect API key provided: {KEY}")])
        with pytest.raises(ModelError) as caught:
            client(server).complete(HELLO)
        assert str(caught.value).endswith("openai/tiny: 401: Incorrect API key provided: [OPENAI_API_KEY]")
        assert KEY not in "".join(r.getMessage() for r in caplog.records if r.name.startswith("agent"))


class TestAWaitThatAProviderAsksFor:
    def test_holds_for_all_its_models_of_the_process(self, serve: Serve, client: Client) -> None:
        server, clock = serve([fails(429, retry_after="20"), says("one"), says("two")]), Clock()
        told, other = client(server, retry=clock.retry(attempts=1)), client(server, retry=clock.retry())
        with pytest.raises(ModelError):
            told.complete(HELLO)
        assert clock.asked == []
        assert other.complete(HELLO).text == "one"
        assert 20 <= sum(clock.asked) <= 21
        told.complete(HELLO)
        assert len(clock.asked) == 1

    def test_does_not_hold_for_another_provider(self, serve: Serve, client: Client) -> None:
        clock = Clock()
        with pytest.raises(ModelError):
            client(serve([fails(429, retry_after="20")]), retry=clock.retry(attempts=1)).complete(HELLO)
        client(serve([says("x")]), retry=clock.retry()).complete(HELLO)
        assert clock.asked == []

    def test_ends_when_the_run_is_cancelled(self, serve: Serve, client: Client) -> None:
        halt = Halt()
        server = serve(lambda body: halt.cancel.set() or fails(429, retry_after="200"))
        with pytest.raises(Stopped):
            client(server, halt=halt, retry=None).complete(HELLO)
        assert len(server.requests) == 1

    def test_ends_when_the_time_of_the_run_is_over(self, serve: Serve, client: Client) -> None:
        left = iter([0.01] * 9)
        halt = Halt(left_s=lambda: next(left, 0.0))
        with pytest.raises(Stopped):
            client(serve([fails(429, retry_after="200")]), halt=halt, retry=None).complete(HELLO)


def test_no_more_ask_a_provider_at_the_same_time_than_the_settings_allow() -> None:
    pace, together, asking, seen = pace_of("test-provider", 2), threading.Barrier(2, timeout=100), [0], []

    def ask(_: int) -> None:
        with pace_of("test-provider").slot(time.sleep):
            asking[0] += 1
            seen.append(asking[0])
            together.wait()
            asking[0] -= 1

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(ask, range(12)))
    assert pace is pace_of("test-provider")
    assert max(seen) == 2
