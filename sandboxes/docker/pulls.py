"""Pulling images: few at once, each once, with patience for a registry that fails for now, and never without an end.

Law: a registry is waited for once, whoever wants an image of it, and nobody who waits takes the place of a pull. Who
waits no longer (`until`) has nothing to wait for; what the engine has begun may come to its end.
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

if TYPE_CHECKING:
    from docker import DockerClient

__all__ = ["AT_ONCE", "PATIENCE_S", "SILENCE_S", "pull", "until"]

log = logging.getLogger(__name__)

AT_ONCE = 4
"""Pulls of this process at the same time; each counts against the limit of a registry."""
PATIENCE_S = (5.0, 20.0, 60.0, 180.0)
"""How long a registry that has had too many requests, or fails, is left alone, time after time."""
SILENCE_S = 600.0
"""How long an engine may say nothing: a layer waits for others' pulls."""
_TIMEOUT_S = 3600.0
_POLL_S = 0.2
"""How soon whoever waits for a pull notices that it is for nothing."""

_TOO_MANY = re.compile(r"toomanyrequests|too many requests| 429", re.IGNORECASE)
_FOR_NOW = re.compile(
    r"\bstatus\b.{0,60}\b5\d\d\b|\bHTTP 5\d\d\b|internal server error|bad gateway|service unavailable|gateway time-?out"
    r"|connection reset|connection refused|broken pipe|\bEOF\b|i/o timeout|handshake timeout|timed out"
    r"|deadline exceeded|awaiting headers|temporary failure|server misbehaving|try again",
    re.IGNORECASE,
)
"""What engines and Go's network say of a failure that may pass by itself. A registry that refuses the user, lacks the
image, or is not where it is looked for, stays so."""

_ROOM = threading.BoundedSemaphore(AT_ONCE)
_BY_NAME: dict[str, threading.Lock] = {}
_OVER: ContextVar[threading.Event] = ContextVar("over", default=threading.Event())  # noqa: B039  # nobody sets it


@contextmanager
def until(over: threading.Event) -> Iterator[None]:
    """In the block, this thread waits for no image once the event is set: `pull` raises `PullLeft`."""
    before = _OVER.set(over)
    try:
        yield
    finally:
        _OVER.reset(before)


@contextmanager
def _alone(lock: threading.Lock) -> Iterator[None]:
    """Hold a lock in the block, unless nobody waits any longer before it is to be had."""
    while not lock.acquire(timeout=_POLL_S):
        _go_on()
    try:
        yield
    finally:
        lock.release()


class _Registry:
    """Whether a registry has failed for longer than anybody waits."""

    def __init__(self) -> None:
        self._waiting = threading.Lock()
        self._waits = 0
        self._given_up = False

    def left_of(self, name: str, attempt: Callable[[], str], pause: Callable[[float], None]) -> str:
        """The problem of an attempt, when one that may pass has been waited for. One thread waits; others see what
        became of it, all at once, and after a wait for nothing each asks only once."""
        while True:
            before = self._waits
            problem = attempt()
            if not _may_pass(problem):
                self._given_up = False
                return problem
            with _alone(self._waiting):
                if self._waits == before:
                    return problem if self._given_up else self._waited_out(name, problem, attempt, pause)

    def _waited_out(self, name: str, problem: str, attempt: Callable[[], str], pause: Callable[[float], None]) -> str:
        for wait_s in PATIENCE_S:
            log.warning("%s: %s; the registry is left alone for %.0f s", name, problem, wait_s)
            pause(wait_s)
            problem = attempt()
            if not _may_pass(problem):
                break
        self._waits += 1
        self._given_up = _may_pass(problem)
        return problem


_REGISTRIES: dict[str, _Registry] = {}


def _pause(seconds: float) -> None:
    _OVER.get().wait(seconds)
    _go_on()


def _go_on() -> None:
    if _OVER.get().is_set():
        raise PullLeft("nobody waits for the image any longer")


def _waited_for(work: Callable[[], str]) -> str:
    """What it comes to, in a thread that is left alone when nobody waits for it any longer."""
    ended: Future[str] = Future()

    def run() -> None:
        try:
            ended.set_result(work())
        except BaseException as error:  # it is the waiting thread's
            ended.set_exception(error)

    _go_on()
    threading.Thread(target=copy_context().run, args=(run,), name="pull", daemon=True).start()
    while not wait((ended,), _POLL_S).done:
        _go_on()
    return ended.result()


def pull(
    client: DockerClient,
    name: str,
    pause: Callable[[float], None] = _pause,
    silence_s: float = SILENCE_S,
) -> None:
    """Have the engine pull an image; one that another thread has pulled meanwhile is not asked for again.

    Raises:
        ImageMissing: it is not to be had.
        RegistryBusy: its registry has had too many requests, and still has after all that patience.
        RegistryDown: its registry, or the way to it, fails, and still does after all that patience.
        PullLeft: nobody waits for it any longer (`until`).
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
        if _there(client, name):
            return
        problem = registry.left_of(name, attempt, pause)
    if problem:
        raise _failure(name, problem)


def _failure(name: str, problem: str) -> Exception:
    if _TOO_MANY.search(problem):
        return RegistryBusy(
            f"the registry of {name} has had too many requests ({problem}), and still after {sum(PATIENCE_S):.0f} s; "
            "`docker login` raises its limit, or go on when it has passed"
        )
    if _may_pass(problem):
        return RegistryDown(
            f"{name} cannot be pulled for now ({problem}), and its registry was waited for {sum(PATIENCE_S):.0f} s; "
            "go on when it and the network work again"
        )
    return ImageMissing(f"there is no image {name} and it cannot be pulled ({problem})")


def _there(client: DockerClient, name: str) -> bool:
    from docker.errors import ImageNotFound

    try:
        client.images.get(name)
    except ImageNotFound:
        return False
    return True


def _may_pass(problem: str) -> bool:
    return bool(_TOO_MANY.search(problem) or _FOR_NOW.search(problem))


def _pull_once(client: DockerClient, name: str, silence_s: float) -> str:
    """Why it did not work; empty when it did."""
    from requests import RequestException

    deadline = time.monotonic() + _TIMEOUT_S
    try:
        for event in _events(client, name, silence_s):
            if "error" in event:
                return str(event["error"]).replace(name, "it")
            if time.monotonic() > deadline:
                return f"it takes longer than {_TIMEOUT_S:.0f} s"
    except (RequestException, json.JSONDecodeError) as error:
        return f"the engine broke off, or timed out after {silence_s:.0f} s of silence: {error}"
    return ""


def _events(client: DockerClient, name: str, silence_s: float) -> Iterator[dict[str, Any]]:
    """What the engine says of a pull. The SDK's own `pull` waits without an end for an engine that says nothing."""
    from docker import auth, utils

    repository, tag = utils.parse_repository_tag(name)
    registry, _ = auth.resolve_repository_name(repository)
    header = auth.get_config_header(client.api, registry)
    wanted = {"fromImage": repository, "tag": tag or "latest"}
    if "x86_64" in name:  # published SWE-bench images are x86-64 only; an ARM machine emulates them if it is told to
        wanted["platform"] = "linux/amd64"
    with client.api.post(
        f"{client.api.base_url}/v{client.api.api_version}/images/create",
        params=wanted,
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
