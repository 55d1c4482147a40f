"""Faults of a model's provider through whole searches, over real HTTP and in a real sandbox: every one ends in a patch,
in a clear error, or in a run that can be resumed, and nothing is paid for twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.budget import Budget, Stop, Usage
from agent.build.composition import resume, start
from agent.config import load
from agent.engine.components import Components
from agent.errors import ConfigError, ModelError
from agent.evaluate.value.tests import PassingTests
from agent.models.deadlines import Deadlines
from agent.models.halt import Halt
from agent.policy.chat.policy import ChatPolicy
from agent.run.events import Asked, Spent
from agent.run.journal import read_events
from agent.run.run import Run
from agent.search.best_of_n import BestOfN
from agent.search.linear import Linear
from agent.solver.result import Result
from agent.solver.solve import solve
from sandboxes import Provider
from tests.clients import KEY, Clock, clients, servers
from tests.projects import BUG, FIX, means, task
from tests.scripted_server import Reply, ScriptedServer, fails, says
from tests.tiers import slow_but

pytestmark = pytest.mark.namespace

LOOK = says("Looking.", ("view", {"path": "means.py"}))
RIGHT = says("That is it.", ("edit", {"path": "means.py", "old": BUG, "new": FIX}), ("run_tests", {}))
PRICE = (2.0, 10.0, 0.5)
DOLLARS = (1000 * 2.0 + 100 * 10.0) / 1e6
"""For one answer of the scripted server."""


@dataclass
class Searched:
    """One search, and what was asked and counted."""

    result: Result
    counted: Usage
    server: ScriptedServer
    unknown: int
    """How many answers were paid for as far as anybody knows, and were none."""


def counted(run_dir: Path) -> Usage:
    """What a journal says was spent on models."""
    total = Usage()
    for event in read_events(run_dir / "journal.jsonl"):
        if isinstance(event, Asked):
            total += event.answer.usage
        elif isinstance(event, Spent) and event.usage.model_calls:
            total += event.usage
    return total


@pytest.fixture(scope="module", autouse=True)
def key() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        yield


@pytest.fixture(scope="module", params=slow_but([0], [0, 1]), ids=["no stall", "a stall"])
def stormy(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Searched]:
    """A search in which everything goes wrong that can pass. A stall takes seconds."""
    folder, stalls = tmp_path_factory.mktemp("stormy"), request.param
    script = [
        fails(429, retry_after="5"),
        fails(500),
        *[LOOK.fails("stall", 4)] * stalls,
        LOOK.fails("cut", 5),
        Reply(b"{not json"),
        Reply(b'{"choices": []}'),
        says("a", ("viwe", {"path": "means.py"})),
        says("a", ("edit", '{"path": "means.py", "old": "    if'), finish_reason="length"),
        LOOK.plain(),
        RIGHT,
    ]
    with servers() as serve, clients() as client, Run.open(folder / "run") as run:
        server = serve(script)
        model = client(server, price=PRICE, deadlines=Deadlines(idle_s=3.0), retry=Clock().retry())
        parts = Components(provider, ChatPolicy(model), Linear(), PassingTests(), Budget(max_nodes=5), baseline_runs=1)
        result = solve(task(means(folder / "repo")), parts, run)
        yield Searched(result, counted(folder / "run"), server, unknown=3 + stalls)


class TestFaultsThatPass:
    @pytest.mark.slow
    def test_end_in_a_patch(self, stormy: Searched) -> None:
        assert (stormy.result.status, stormy.result.verified) == ("solved", True)
        assert FIX.encode() in stormy.result.patch

    def test_are_paid_for_once_as_far_as_anybody_knows(self, stormy: Searched) -> None:
        answered, unknown, refused = 4, stormy.unknown, 2
        assert len(stormy.server.requests) == answered + unknown + refused
        usage = stormy.result.usage
        assert (usage.model_calls, usage.unpriced_calls) == (answered + unknown, unknown)
        assert usage.cost_usd == pytest.approx(answered * DOLLARS)

    def test_are_all_in_the_journal(self, stormy: Searched) -> None:
        usage = stormy.result.usage
        assert (stormy.counted.model_calls, stormy.counted.unpriced_calls) == (usage.model_calls, usage.unpriced_calls)
        assert stormy.counted.cost_usd == pytest.approx(usage.cost_usd)


class TestFaultsThatDoNotPass:
    def test_end_the_run_at_once_for_all_workers(self, provider: Provider, tmp_path: Path) -> None:
        """The other one waits for an answer that has stalled, and would for a minute."""
        with servers() as serve, clients() as client, Run.open(tmp_path / "run") as run:
            server, halt = serve([LOOK.fails("stall", 4), fails(401)]), Halt()
            policy = ChatPolicy(client(server, halt=halt, retry=None))
            parts = Components(
                provider, policy, BestOfN(n=2), PassingTests(), Budget(), workers=2, lines=2, halt=halt, baseline_runs=1
            )
            result = solve(task(means(tmp_path / "repo")), parts, run)
        self.ended(result, Stop.FAILED, ModelError, "refuses the key")
        assert len(server.requests) == 2
        assert result.usage == counted(tmp_path / "run") + Usage(measurements=result.usage.measurements)
        assert (result.usage.model_calls, result.usage.unpriced_calls) == (1, 1)

    @pytest.mark.slow
    def test_end_each_session_in_a_clear_error_and_the_run_is_gone_on_with(self, tmp_path: Path) -> None:
        """One run, whose sessions end for one reason after the other, until the last one solves it."""
        now: list[Reply] = []
        cancel = threading.Event()
        cancelled = False

        def answer(body: Mapping[str, Any]) -> Reply:
            if cancelled:
                cancel.set()
            return now.pop(0) if len(now) > 1 else now[0]

        with servers() as serve:
            server = serve(answer)
            settings = load(overrides=[f"model.base_url={server.url}", "policy=openai/tiny", "model.price=[2, 10]"])
            now[:] = [LOOK, fails(401, f"bad key {KEY}")]
            result = start(task(means(tmp_path / "repo")), settings, tmp_path / "run")
            self.ended(result, Stop.FAILED, ModelError, "refuses the key")
            assert KEY not in str(result.error)
            for reply, kind, words in [
                (fails(404, "no such model"), ConfigError, "no such model"),
                (fails(429, "quota", code="insufficient_quota"), ModelError, "no credit"),
                (fails(400, "cannot stream"), ModelError, "model.stream=false"),
                (fails(503, retry_after="3600"), ModelError, "3600 s"),
            ]:
                now[:] = [reply]
                result = resume(tmp_path / "run")
                self.ended(result, Stop.FAILED, kind, words)
            assert len(server.requests) == 6
            now[:] = [LOOK.fails("stall", 4)]
            self.ended(resume(tmp_path / "run", budget={"max_seconds": result.seconds + 1.5}), Stop.TIME)
            asked, cancelled = len(server.requests), True
            self.ended(resume(tmp_path / "run", cancel=cancel), Stop.INTERRUPTED)
            assert len(server.requests) == asked + 1
            now[:] = [RIGHT]
            solved = resume(tmp_path / "run")
        assert solved.status == "solved"
        assert solved.usage.cost_usd == pytest.approx(counted(tmp_path / "run").cost_usd)
        assert solved.usage.cost_usd == pytest.approx(2 * DOLLARS)
        assert not [t for t in threading.enumerate() if t.name == "ramify-answer" and (t.join(60) or t.is_alive())]

    def ended(self, result: Result, stop: Stop, kind: type[Exception] | None = None, words: str = "") -> None:
        assert result.stop is stop
        assert kind is None or isinstance(result.error, kind)
        assert words in str(result.error)
