"""Requests that begin alike: one goes ahead until its answer begins, so that the others find the provider's cache warm.
Over real HTTP, where the server sees who asks together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from agent.models import Completion, Message, Model
from agent.models.pace import Pace, pace_of
from agent.models.warming import BLOCK_BYTES, KEPT_S, MOST, NO_PROMPT, PrefixCache, Prompt, prompt_of
from tests.clients import Client, Serve
from tests.scripted_server import Reply, fails, says

LONG_S = 100
"""Longer than the slowest machine takes."""


def talk(task: str, attempt: int = 0, length: int = BLOCK_BYTES) -> list[Message]:
    return [{"role": "system", "content": task * length}, {"role": "user", "content": f"attempt {attempt}"}]


@contextmanager
def asked(model: Model, talks: Sequence[Sequence[Message]]) -> Iterator[list[Future[Completion]]]:
    """Each by a worker of its own; all are answered at the end."""
    with ThreadPoolExecutor(len(talks)) as pool:
        yield (answers := [pool.submit(model.complete, messages) for messages in talks])
    for answer in answers:
        answer.result()


def comes_true(fact: Callable[[], bool]) -> bool:
    until, never = time.monotonic() + LONG_S, threading.Event()
    while not fact() and time.monotonic() < until:
        never.wait(0.005)
    return fact()


class TestRequestsThatBeginAlike:
    @pytest.mark.parametrize(("stream", "silent"), [(True, 2), (False, 1)], ids=["streamed", "unstreamed"])
    def test_wait_for_the_answer_to_the_first_and_then_go_together(
        self, serve: Serve, client: Client, stream: bool, silent: int
    ) -> None:
        """Headers and comments, which come before, are no answer."""
        begin, together = threading.Event(), threading.Event()

        def script(body: Mapping[str, Any]) -> Reply:
            if len(server.requests) == 4:
                together.set()
            return says("x").waits(begin, silent) if len(server.requests) == 1 else says("x").waits(together, 0)

        server = serve(script)
        with asked(client(server, stream=stream), [talk("a", n) for n in range(4)]):
            alone = comes_true(lambda: pace_of(server.url).behind == 3 and len(server.requests) == 1)
            begin.set()
        assert alone
        assert len(server.requests) == 4

    def test_do_not_wait_for_its_end(self, serve: Serve, client: Client) -> None:
        others = threading.Event()

        def script(body: Mapping[str, Any]) -> Reply:
            if len(server.requests) == 2:
                others.set()
            return says("x").waits(others, 3)

        server = serve(script)
        with asked(client(server), [talk("a", n) for n in range(2)]):
            pass
        assert len(server.requests) == 2

    def test_wait_for_the_next_where_the_first_has_failed(self, serve: Serve, client: Client) -> None:
        first, second = threading.Event(), threading.Event()
        replies = iter([fails(500).waits(first, 0), says("x").waits(second, 2)])
        server = serve(lambda body: next(replies, says("x")))
        with asked(client(server), [talk("a", n) for n in range(3)]):
            alone = comes_true(lambda: pace_of(server.url).behind == 2 and len(server.requests) == 1)
            first.set()
            alone = comes_true(lambda: pace_of(server.url).behind == 2 and len(server.requests) == 2) and alone
            second.set()
        assert alone
        assert len(server.requests) == 4

    def test_go_at_once_when_the_first_was_answered_before(self, serve: Serve, client: Client) -> None:
        together = threading.Event()

        def script(body: Mapping[str, Any]) -> Reply:
            if len(server.requests) == 3:
                together.set()
            return says("x") if len(server.requests) == 1 else says("x").waits(together, 0)

        server = serve(script)
        model = client(server)
        model.complete(talk("a"))
        with asked(model, [talk("a", n) for n in range(2)]):
            pass
        assert len(server.requests) == 3


class TestRequestsThatGoTogetherAtOnce:
    @pytest.mark.parametrize(
        ("talks", "warm"),
        [
            ([talk("a"), talk("b"), talk("c")], True),
            ([talk("a", n, BLOCK_BYTES // 2) for n in range(3)], True),
            ([talk("a", n) for n in range(3)], False),
        ],
        ids=["they begin otherwise", "they are short", "the settings say so"],
    )
    def test_are_those_that_gain_nothing_by_waiting(
        self, serve: Serve, client: Client, talks: list[list[Message]], warm: bool
    ) -> None:
        together = threading.Event()

        def script(body: Mapping[str, Any]) -> Reply:
            if len(server.requests) == 3:
                together.set()
            return says("x").waits(together, 0)

        server = serve(script)
        with asked(client(server, warm=warm), talks):
            pass
        assert len(server.requests) == 3


def blocks(*names: str, patience_s: float = 0.0) -> Prompt:
    return Prompt(tuple(name.encode() for name in names), patience_s)


class TestAPrefixCache:
    def test_makes_wait_whoever_would_read_a_block_more(self) -> None:
        cache = PrefixCache()
        cache.begun(blocks("a"), frozenset(), 0.0)
        first = cache.warm(blocks("a", "ab", "abc"), 0.0)
        assert cache.is_coming(blocks("a", "ab", "abd"), 0.0)
        assert not any(cache.is_coming(other, 0.0) for other in (NO_PROMPT, blocks("a"), blocks("a", "ac")))
        cache.given_up(first)
        assert not cache.is_coming(blocks("a", "ab"), 0.0)

    def test_leaves_what_one_warms_to_it(self) -> None:
        cache = PrefixCache()
        first, longer = cache.warm(blocks("a"), 0.0), cache.warm(blocks("a", "ab"), 0.0)
        assert (first, longer) == ({b"a"}, {b"ab"})
        cache.given_up(longer)
        assert cache.is_coming(blocks("a", "ab"), 0.0)

    def test_is_cold_again_when_nothing_was_read_for_long(self) -> None:
        cache = PrefixCache()
        cache.begun(blocks("a"), cache.warm(blocks("a"), 0.0), 0.0)
        assert cache.warm(blocks("a"), KEPT_S) == frozenset()
        assert cache.warm(blocks("a"), KEPT_S + 1) == {b"a"}

    def test_forgets_what_was_read_longest_ago(self) -> None:
        cache = PrefixCache()
        for number in range(MOST):
            cache.begun(blocks(str(number)), frozenset(), 0.0)
        cache.begun(blocks("0", "new"), frozenset(), 0.0)
        assert cache.warm(blocks("0"), 0.0) == frozenset()
        assert cache.warm(blocks("1"), 0.0) == {b"1"}


def test_two_conversations_have_the_blocks_in_common_that_are_alike_from_their_beginning_on() -> None:
    one, other = (prompt_of("m", [], talk("a", n, 3 * BLOCK_BYTES) + talk("b"), 9.0) for n in range(2))
    assert [mine == theirs for mine, theirs in zip(one.blocks, other.blocks, strict=True)] == [True] * 3 + [False]
    assert not {*one.blocks} & {*prompt_of("n", [], talk("a", 0, 3 * BLOCK_BYTES), 9.0).blocks}


def test_nobody_waits_longer_than_the_first_token_may_take() -> None:
    pace, clock, prompt = Pace(), [0.0], blocks("a", patience_s=2.5)

    def pause(seconds: float) -> None:
        clock[0] += 1

    with pace.turn(pause, lambda: clock[0], prompt):
        assert clock == [0.0]
        with pace.turn(pause, lambda: clock[0], prompt):
            assert clock == [3.0]
