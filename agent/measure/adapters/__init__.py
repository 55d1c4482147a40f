"""Adapters run the tests of a framework so that the result of each test is known. There is one file per framework.

An adapter provides an `Invocation`, which is carried out in a scratch fork, and parses the result into a `Transcript`;
both steps are pure. `agent.measure.reading` then decides whether to believe the run, by the same rules for all.

Invariant: an adapter never raises on the output of a run, and a run without evidence never passes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.measure.reading import Transcript, read
from agent.measure.warm.plugins import Limits, RunNames

__all__ = ["MESSAGE_BYTES", "PROC", "Adapter", "Invocation", "RunOutput", "read_sealed"]

MESSAGE_BYTES = 1500
"""Maximum size of a failure's message."""
PROC = r"/proc/((thread-)?self\b|(?![a-z]))"
"""Part of the `tricks` patterns. It matches the files of a process in /proc, but not those about the machine."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """What to do in a scratch fork, with the workspace as current directory."""

    script: str
    """A script for `/bin/sh -c`."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files to write before the script runs, by absolute path."""
    gather: tuple[str, ...] = ()
    """`find -path` patterns of result files in the workspace; existing ones are removed before the run."""
    captured: bool = False
    """Whether the script's full output is the result; otherwise only its tail is kept, for people."""


@dataclass(frozen=True, slots=True)
class RunOutput:
    """The output of a test run, to be parsed."""

    nonce: str
    report: bytes = b""
    """The content of `RunNames.report`, or the captured output; empty if there is none."""
    gathered: Mapping[str, bytes] = field(default_factory=dict)
    """Content by path, relative to the workspace."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """A test framework. Patterns are globs of paths relative to the workspace, or of file names."""

    name: str
    command: str
    """The default command to run all tests."""
    named: re.Pattern[str]
    """Found in commands that run this framework."""
    invocation: Callable[[RunNames, str, Sequence[str], Limits], Invocation]
    """How to run this command with only these tests, or with all if none is named or `selects` is false. The adapter
    applies the limits its runner supports; the whole run is killed from outside."""
    read: Callable[[RunOutput], Transcript]
    tests: tuple[str, ...] = ()
    """Files that contain tests or what tests need."""
    config_files: tuple[str, ...] = ()
    """Files that configure the runner. They are restored, and no honest patch touches them."""
    manifests: tuple[str, ...] = ()
    """Files that, among other things, configure tests. They are restored."""
    config_lines: re.Pattern[str] = re.compile(r"(?!)")
    """Matches a line of a manifest about tests: no honest patch changes one."""
    built: tuple[str, ...] = ()
    """Files that are built or installed, not written by hand. They are restored."""
    tricks: re.Pattern[str] = re.compile(r"(?!)")
    """Found in source lines that interact with the runner or end the process instead of doing the program's work."""
    inner: re.Pattern[str] | None = None
    """Matches a source line that marks what follows as test code; None: sources contain no tests."""
    selects: bool = False
    """Whether it can run selected tests; otherwise every run is of all tests."""
    fits: Callable[[Path | None, str], bool] = lambda repo, command: True
    """Whether the repository, given the command, may use this framework; None: the files are in an image."""


def read_sealed(output: RunOutput) -> Transcript:
    """Read a report of sealed lines. Ids are `file::Class::test` or `file::test`; in JavaScript `file::block::name`."""
    return read(output.report, output.nonce)
