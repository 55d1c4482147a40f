"""Requests that begin alike: one goes ahead until its answer begins, so that the others find the provider's cache warm.
Over real HTTP, where the server sees who asks together."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.budget import Usage
from agent.build.composition import start
from agent.build.replay import replay
from agent.config import load
from agent.models import Completion, Message, Model
from agent.models.pace import Pace, pace_of
from agent.models.warming import BLOCK_BYTES, KEPT_S, MOST, NO_PROMPT, PrefixCache, Prompt, prompt_of
from agent.run.run import Run
from tests.clients import TOOLS, Client, Clock, Serve, comes_true
from tests.projects import means, task
from tests.scripted_server import Reply, choices, fails, says


def talk(task: str, attempt: int = 0, length: int = BLOCK_BYTES) -> list[Message]:
    return [{"role": "system", "content": task * length}, {"role": "user", "content": f"attempt {attempt}"}]


@contextmanager
def asked(model: Model, talks: Sequence[Sequence[Message]]) -> Iterator[list[Future[Completion]]]:
    """Each by a worker of its own; all are answered at the end."""
    with ThreadPoolExecutor(len(talks)) as pool:
        yield (answers := [pool.submit(model.complete, messages) for messages in talks])
    for answer in answers:
        answer.result()


def means_edit(text: str) -> Reply:
    """An answer that makes a state of its own."""
    return says(text, ("write", {"path": f"{text}.txt", "content": text}), ("submit", {}))


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
            alone = comes_true(lambda: len(pace_of(server.url).behind) == 3 and len(server.requests) == 1)
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
            alone = comes_true(lambda: len(pace_of(server.url).behind) == 2 and len(server.requests) == 1)
            first.set()
            alone = comes_true(lambda: len(pace_of(server.url).behind) == 2 and len(server.requests) == 2) and alone
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


class TestRequestsThatAreAlikeButForTheSeed:
    """Three siblings: the first goes ahead, so that there are two to go together."""

    def draws(self, serve: Serve, client: Client, *later: Reply, stream: bool = True) -> tuple[list[Any], Any]:
        """What each was answered, and the server."""
        begin, replies = threading.Event(), iter(later)
        server = serve(lambda body: says("a").waits(begin, 1) if len(server.requests) == 1 else next(replies))
        model = client(server, stream=stream)
        with ThreadPoolExecutor(3) as pool:
            answers = [pool.submit(model.complete, talk("a"), TOOLS, seed=n) for n in range(3)]
            comes_true(lambda: len(pace_of(server.url).behind) == 2 and len(server.requests) == 1)
            begin.set()
        return sorted((answer.result() for answer in answers), key=lambda each: each.text), server

    @pytest.mark.parametrize("stream", [True, False])
    def test_go_as_one_with_several_choices_that_is_paid_for_once(
        self, serve: Serve, client: Client, stream: bool
    ) -> None:
        call = ("view", {"path": "a.py"})
        two = choices(says("b", call, reasoning_content="hm"), says("c is longer", call))
        (a, b, c), server = self.draws(serve, client, two, stream=stream)
        assert [request.get("n") for request in server.requests] == [None, 2]
        assert [(each.text, len(each.tool_calls)) for each in (a, b, c)] == [("a", 0), ("b", 1), ("c is longer", 1)]
        assert b.raw["reasoning_content"] == "hm"
        assert b.usage + c.usage == Usage(1, 1000, 200, unpriced_calls=1)
        assert Usage() in (b.usage, c.usage)

    def test_are_asked_for_one_by_one_by_a_server_that_refuses_or_knows_no_choices(
        self, serve: Serve, client: Client
    ) -> None:
        told = Reply(b'{"error": {"message": "n is not supported", "code": 400}}')  # an answer, which may have a price
        for refusals, calls in (([fails(400, "n is not supported")], 3), ([told], 4), ([], 3)):
            said, server = self.draws(serve, client, *refusals, says("b"), says("c"))
            assert [each.text for each in said] == ["a", "b", "c"]
            assert [request.get("n") for request in server.requests].count(2) == 1
            assert sum(each.usage.model_calls for each in said) == calls
            assert not pace_of(server.url).several

    def test_go_on_alone_when_the_one_that_asks_for_all_fails_for_good(self, serve: Serve, client: Client) -> None:
        """The one has no attempt left, the other has its own."""
        begin, seeds = threading.Event(), iter([fails(500), says("b")])
        server = serve(lambda body: says("a").waits(begin, 1) if len(server.requests) == 1 else next(seeds))
        model = client(server, retry=Clock().retry(attempts=1))
        with ThreadPoolExecutor(3) as pool:
            answers = [pool.submit(model.complete, talk("a"), seed=n) for n in range(3)]
            comes_true(lambda: len(pace_of(server.url).behind) == 2 and len(server.requests) == 1)
            begin.set()
        assert sorted(str(answer.exception()).count("500") for answer in answers) == [0, 0, 1]
        assert [request.get("n") for request in server.requests] == [None, 2, None]

    def test_are_asked_for_by_themselves_where_the_settings_give_a_number(self) -> None:
        assert not prompt_of("m", [], talk("a"), 9.0, {"n": 1, "seed": 2}).draw
        one, other, hotter = (
            prompt_of("m", [], talk("a"), 9.0, given).draw
            for given in ({"seed": 1}, {"seed": 2}, {"seed": 2, "temperature": 1.0})
        )
        assert one == other != hotter


@pytest.mark.slow
@pytest.mark.namespace
def test_siblings_of_a_search_go_together_and_each_answer_is_recorded_and_replayed(
    serve: Serve, tmp_path: Path
) -> None:
    begin, later = threading.Event(), [means_edit("a"), means_edit("b")]
    server = serve(lambda body: means_edit("c").waits(begin, 1) if len(server.requests) == 1 else choices(*later))
    flags = {"policy.name": "openai/tiny", "policy.angles": False, "search.name": "best_of_n", "search.n": 3}
    flags |= {"workers": 3, "model.base_url": server.url, "sandbox.kind": "namespace", "measure.baseline_runs": 1}
    with ThreadPoolExecutor(1) as pool:
        solving = pool.submit(start, task(means(tmp_path / "repo")), load(flags=flags), tmp_path / "run")
        together = comes_true(lambda: len(pace_of(server.url).behind) == 2)
        begin.set()
        result = solving.result()
    assert together
    assert [request.get("n") for request in server.requests] == [None, 2]
    assert result.usage.model_calls == 2
    with Run.read(tmp_path / "run") as run:
        assert sorted(asked.answer.usage.model_calls for asked in run.asked) == [0, 1, 1]
        assert {asked.answer.text for asked in run.asked} == {"a", "b", "c"}
        assert len({asked.sampling["seed"] for asked in run.asked}) == 3
    again = replay(tmp_path / "run", tmp_path / "again")
    assert (again.difference, again.reused, again.missing) == ("", 3, 0)


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


def test_who_has_been_answered_leaves_to_others_what_they_warm() -> None:
    pace, clock, waits = Pace(), [0.0], list[float]()
    prompt, later = blocks("a"), blocks("a", patience_s=1.0)

    def pause(seconds: float) -> None:
        waits.append(seconds)
        clock[0] += 1

    with ExitStack() as first, ExitStack() as second:
        first.enter_context(pace.slot(pause, lambda: clock[0], prompt)).begun()
        clock[0] = KEPT_S + 1
        second.enter_context(pace.slot(pause, lambda: clock[0], prompt))
        first.close()
        with pace.slot(pause, lambda: clock[0], later):
            assert len(waits) == 1


def test_nobody_waits_longer_than_the_first_token_may_take() -> None:
    pace, clock, prompt = Pace(), [0.0], blocks("a", patience_s=2.5)

    def pause(seconds: float) -> None:
        clock[0] += 1

    with pace.slot(pause, lambda: clock[0], prompt):
        assert clock == [0.0]
        with pace.slot(pause, lambda: clock[0], prompt):
            assert clock == [3.0]
