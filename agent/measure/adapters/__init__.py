"""Adapters: how the tests of a test framework are run so that each test's end is known, one file a framework.

An adapter is asked for an `Order`, which is carried out in a scratch fork, and reads what came of it into `Told`; both
are pure. `agent.measure.reading` then decides whether the run can be believed, by the same rules for all.

Law: an adapter never raises on what a run left behind, and no evidence of a run is never a pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from agent.measure.reading import Told
from agent.measure.warm.planting import Limits, Plan

__all__ = ["PROC", "Adapter", "Left", "Order", "inside"]

PROC = r"/proc/((thread-)?self\b|(?![a-z]))"
"""The files of a process, in a pattern of tricks; what the kernel says of the machine is everybody's."""


@dataclass(frozen=True, slots=True)
class Order:
    """What to do in a scratch fork, the workspace being the current directory."""

    script: str
    """For `/bin/sh -c`."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """To be written before, by absolute path."""
    gather: tuple[str, ...] = ()
    """Patterns of `find -path` of files in the workspace that hold results; those that are there before are removed."""
    captured: bool = False
    """What the script prints is the result, in full; otherwise only its tail is kept, for people."""


@dataclass(frozen=True, slots=True)
class Left:
    """What a run left behind."""

    nonce: str
    exit_code: int
    report: bytes = b""
    """The file `Plan.report`, which holds what was printed where that was to be captured; empty: there is none."""
    gathered: Mapping[str, bytes] = field(default_factory=dict)
    """Content by path, relative to the workspace."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """A test framework. Patterns are globs of paths relative to the workspace, or of file names."""

    name: str
    command: str
    """What runs all tests, where nobody says."""
    named: re.Pattern[str]
    """Found in a command that means to run this framework."""
    order: Callable[[Plan, str, Sequence[str], Limits], Order]
    """How to run this command with these tests only, or with all where none is named or `selects` is not set. Of the
    limits an adapter keeps what its runner allows; the whole run is killed by whoever carries the order out."""
    read: Callable[[Left], Told]
    tests: tuple[str, ...] = ()
    """Files that hold tests or what tests need."""
    steering: tuple[str, ...] = ()
    """Files that tell the runner what to do: put back, and no honest patch touches them."""
    manifests: tuple[str, ...] = ()
    """Files that say, among other things, how tests are run: put back."""
    steers: re.Pattern[str] = re.compile(r"(?!)")
    """Matches a line of a manifest that is about tests: no honest patch changes one."""
    built: tuple[str, ...] = ()
    """What is made or installed, and not written by hand: put back."""
    tricks: re.Pattern[str] = re.compile(r"(?!)")
    """Found in a line by which a source talks to its runner, or ends its process, in place of doing its work."""
    inner: re.Pattern[str] | None = None
    """Matches the line of a source that says of what follows that it is there for tests only; None: sources hold no
    tests."""
    selects: bool = False
    """It can run some of the tests; others always run all."""
    fits: Callable[[Path | None, str], bool] = lambda repo, command: True
    """Whether the repository of a command that names it may be one of its; None: its files are in an image."""


def inside(program: str) -> bytes:
    """The source of a program that runs in the sandbox."""
    return (resources.files("agent.measure.inside") / program).read_bytes()
