"""Clients of the scripted server, and a clock for their waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from agent.models.openai import OpenAIModel
from agent.models.retry import Retry
from tests.scripted_server import Script, ScriptedServer

LONG_S = 100
KEY = "sk-secret-of-the-tests"
HELLO = [{"role": "user", "content": "hello"}]
TOOLS = [{"type": "function", "function": {"name": "view", "description": "", "parameters": {"type": "object"}}}]

Serve = Callable[[Script], ScriptedServer]
Client = Callable[..., OpenAIModel]


class Clock:
    """Does not wait but remembers what it was asked for. It is long before any time of the real clock."""

    def __init__(self) -> None:
        self.time = -1e6
        self.asked: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        self.time += seconds

    def retry(self, **settings: Any) -> Retry:
        return Retry(sleep=self.sleep, now=lambda: self.time, rng=Random(0), **settings)


def comes_true(fact: Callable[[], bool]) -> bool:
    """Whether it does, in longer than the slowest machine takes."""
    until, never = time.monotonic() + LONG_S, threading.Event()
    while not fact() and time.monotonic() < until:
        never.wait(0.005)
    return fact()


@contextmanager
def servers() -> Iterator[Serve]:
    """Starts servers, and stops them at the end."""
    running: list[ScriptedServer] = []

    def start(script: Script) -> ScriptedServer:
        running.append(ScriptedServer(script).__enter__())
        return running[-1]

    yield start
    for server in running:
        server.__exit__()


@contextmanager
def clients() -> Iterator[Client]:
    """Makes models of servers, and closes them at the end."""
    made: list[OpenAIModel] = []

    def make(server: ScriptedServer | str, **settings: Any) -> OpenAIModel:
        url = server if isinstance(server, str) else server.url
        made.append(OpenAIModel("openai/tiny", base_url=url, **{"retry": Clock().retry(), **settings}))
        return made[-1]

    yield make
    for model in made:
        model.close()
