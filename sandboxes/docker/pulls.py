"""Pulls images: a few at a time, each once, with retries while a registry fails, and always with a time limit.

Invariant: only one thread waits for a failing registry, and a waiting thread does not take the place of a pull. A
caller can stop waiting (`until`); the engine may still finish a pull that it has started.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any

from sandboxes import ImageMissing, PullLeft, RegistryBusy, RegistryDown
from sandboxes.docker.client import has_image

if TYPE_CHECKING:
    from docker import DockerClient


log = logging.getLogger(__name__)

AT_ONCE = 4
"""How many images this process pulls at once; each pull counts against the registry's limit."""
PATIENCE_S = (5.0, 20.0, 60.0, 180.0)
"""The pauses, in order, before each retry of a registry that is overloaded or fails."""
SILENCE_S = 600.0
"""How long an engine may send nothing, because a layer may have to wait for other pulls."""
_TIMEOUT_S = 3600.0
_POLL_S = 0.2
"""How often a waiting thread checks whether it should stop."""

_TOO_MANY = re.compile(r"toomanyrequests|too many requests| 429", re.IGNORECASE)
_FOR_NOW = re.compile(
    r"\bstatus\b.{0,60}\b5\d\d\b|\bHTTP 5\d\d\b|internal server error|bad gateway|service unavailable|gateway time-?out"
    r"|connection reset|connection refused|broken pipe|\bEOF\b|i/o timeout|handshake timeout|timed out"
    r"|deadline exceeded|awaiting headers|temporary failure|server misbehaving|try again",
    re.IGNORECASE,
)
"""Messages of engines and Go's network for temporary failures. A registry that refuses the user, lacks the image, or
cannot be found is a permanent failure."""

_ROOM = threading.BoundedSemaphore(AT_ONCE)
_BY_NAME: dict[str, threading.Lock] = {}
_CANCELLED: ContextVar[threading.Event] = ContextVar("cancelled", default=threading.Event())  # noqa: B039  # nobody sets it


@contextmanager
def until(cancelled: threading.Event) -> Iterator[None]:
    """Let `pull` raise `PullLeft` in this thread, in the block, once the event is set."""
    before = _CANCELLED.set(cancelled)
    try:
        yield
    finally:
        _CANCELLED.reset(before)


@contextmanager
def _alone(lock: threading.Lock) -> Iterator[None]:
    """Hold a lock in the block; raise PullLeft if the caller stops waiting before it is free."""
    while not lock.acquire(timeout=_POLL_S):
        _go_on()
    try:
        yield
    finally:
        lock.release()


class _Registry:
    """Remembers whether a registry still failed after all retries."""

    def __init__(self) -> None:
        self._waiting = threading.Lock()
        self._waits = 0
        self._given_up = False

    def problem_after_retries(self, name: str, attempt: Callable[[], str], pause: Callable[[float], None]) -> str:
        """The problem that is left after retries of temporary failures; empty on success.

        One thread waits and retries, and the others use its outcome. After retries in vain each caller tries once.
        """
        while True:
            before = self._waits
            problem = attempt()
            if not _may_pass(problem):
                self._given_up = False
                return problem
            with _alone(self._waiting):
                if self._waits == before:
                    return problem if self._given_up else self._retry(name, problem, attempt, pause)

    def _retry(self, name: str, problem: str, attempt: Callable[[], str], pause: Callable[[float], None]) -> str:
        for wait_s in PATIENCE_S:
            log.warning("%s: %s; trying again in %.0f s", name, problem, wait_s)
            pause(wait_s)
            problem = attempt()
            if not _may_pass(problem):
                break
        self._waits += 1
        self._given_up = _may_pass(problem)
        return problem


_REGISTRIES: dict[str, _Registry] = {}


def _pause(seconds: float) -> None:
    _CANCELLED.get().wait(seconds)
    _go_on()


def _go_on() -> None:
    if _CANCELLED.get().is_set():
        raise PullLeft("nobody is waiting for the image any more")


def _waited_for(work: Callable[[], str]) -> str:
    """Run `work` in a thread and return its result; the thread is abandoned if the caller stops waiting."""
    ended: Future[str] = Future()

    def run() -> None:
        try:
            ended.set_result(work())
        except BaseException as error:  # raised again in the waiting thread
            ended.set_exception(error)

    _go_on()
    threading.Thread(target=copy_context().run, args=(run,), name="pull", daemon=True).start()
    while not wait((ended,), _POLL_S).done:
        _go_on()
    return ended.result()


def pull(
    client: DockerClient, name: str, pause: Callable[[float], None] = _pause, silence_s: float = SILENCE_S
) -> None:
    """Let the engine pull an image, unless another thread has pulled it meanwhile.

    Raises:
        ImageMissing: the image cannot be pulled.
        RegistryBusy: its registry still refuses too many requests after all retries.
        RegistryDown: its registry, or the network to it, still fails after all retries.
        PullLeft: the caller has stopped waiting (`until`).
    """
    from docker import auth, utils

    registry = _REGISTRIES.setdefault(auth.resolve_repository_name(utils.parse_repository_tag(name)[0])[0], _Registry())

    def once() -> str:
        with _ROOM:
            _go_on()
            return _pull_once(client, name, silence_s)

    def attempt() -> str:
        return _waited_for(once)

    with _alone(_BY_NAME.setdefault(name, threading.Lock())):
        if has_image(client, name):
            return
        problem = registry.problem_after_retries(name, attempt, pause)
    if problem:
        raise _failure(name, problem)


def _failure(name: str, problem: str) -> Exception:
    if _TOO_MANY.search(problem):
        return RegistryBusy(
            f"the registry of {name} got too many requests ({problem}), even after {sum(PATIENCE_S):.0f} s of retries; "
            "`docker login` raises its limit; or continue later"
        )
    if _may_pass(problem):
        return RegistryDown(
            f"{name} cannot be pulled for now ({problem}), even after {sum(PATIENCE_S):.0f} s of retries; "
            "continue when the registry and the network work again"
        )
    return ImageMissing(f"there is no image {name} and it cannot be pulled ({problem})")


def _may_pass(problem: str) -> bool:
    return bool(_TOO_MANY.search(problem) or _FOR_NOW.search(problem))


def _pull_once(client: DockerClient, name: str, silence_s: float) -> str:
    """Pull once; return the problem, or an empty text on success."""
    from requests import RequestException

    deadline = time.monotonic() + _TIMEOUT_S
    try:
        for event in _events(client, name, silence_s):
            if "error" in event:
                return str(event["error"]).replace(name, "it")
            if time.monotonic() > deadline:
                return f"the pull takes longer than {_TIMEOUT_S:.0f} s"
    except (RequestException, json.JSONDecodeError) as error:
        return f"the engine broke off, or timed out after {silence_s:.0f} s of silence: {error}"
    return ""


def _events(client: DockerClient, name: str, silence_s: float) -> Iterator[dict[str, Any]]:
    """The engine's events of a pull. The SDK's own `pull` has no time limit for a silent engine."""
    from docker import auth, utils

    repository, tag = utils.parse_repository_tag(name)
    registry, _ = auth.resolve_repository_name(repository)
    header = auth.get_config_header(client.api, registry)
    params = {"fromImage": repository, "tag": tag or "latest"}
    if "x86_64" in name:  # published SWE-bench images are x86-64 only; an ARM machine must be told to emulate them
        params["platform"] = "linux/amd64"
    with client.api.post(
        f"{client.api.base_url}/v{client.api.api_version}/images/create",
        params=params,
        headers={"X-Registry-Auth": header} if header else {},
        stream=True,
        timeout=silence_s,
    ) as answer:
        if answer.status_code >= 400:
            yield {"error": json.loads(answer.content or b"{}").get("message", answer.reason)}
            return
        for line in answer.iter_lines(chunk_size=None):
            if line:
                yield json.loads(line)
