"""Runs the searches of one policy on a source, as a batch of `ramify bench run`, which can be resumed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent.errors import RamifyError
from agent.files import write_atomically
from agent.learning.managed_process import gone_after, leaving_by_signals

SOME_FAILED = 1
"""The exit code of `ramify bench run` if some instances did not end."""


class PlayFailed(RamifyError):
    """A batch could not be run."""


class SomeFailed(PlayFailed):
    """A batch was run, and some of its searches failed for outside reasons."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions that are the same for all policies that are compared."""

    max_tried: int = 60
    """The maximum number of states that a search tries."""
    width: int = 200
    """The number of edits of a state that are ranked."""
    workers: int = 1
    part: str = ""
    """The part of the source to use, as for `--slice`, unless ids are given."""
    settings: tuple[str, ...] = ()
    """Further settings for all searches, as `KEY=VALUE`."""
    rollouts: int = 0
    """The rollouts of a chat policy on each task; 0: the policy is `edit`."""

    @property
    def once(self) -> Conditions:
        """The conditions for comparing policies: a chat policy has one rollout."""
        return replace(self, rollouts=min(1, self.rollouts))

    @property
    def arguments(self) -> list[str]:
        """The conditions as arguments of `ramify bench run`."""
        kind = ["--model", "edit", "--search", "best_first", "-c", f"policy.width={self.width}"]
        if self.rollouts:
            kind = ["--search", "best_of_n", "-c", f"search.n={self.rollouts}", "-c", "model.body.logprobs=true"]
            kind += ["--rollouts", str(self.rollouts), "-c", "tournament.stop_agreed=false"]
        return [*kind, "--workers", str(self.workers), "--max-nodes", str(self.max_tried + 1)]


def play(source: Path, out: Path, flags: Sequence[str], conditions: Conditions, ids: Sequence[str] = ()) -> Path:
    """Run a batch to its end and return its folder.

    Raises:
        SomeFailed: some searches did not end.
        PlayFailed: `ramify bench run` failed; its message is on stderr.
    """
    command = [sys.executable, "-m", "agent", "bench", "run", str(source), "--out", str(out), "--reveal-tests"]
    command += conditions.arguments
    if ids:
        command += ["--ids", f"@{_write_ids(ids, out)}"]
    elif conditions.part:
        command += [f"--slice={conditions.part}"]
    for setting in (*conditions.settings, *flags):
        command += ["-c", setting]
    env = {"OPENAI_API_KEY": "none"} | os.environ  # our own server needs no key, but the client insists on one
    with leaving_by_signals():
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=env, start_new_session=True)
        with gone_after(process, alone=True):
            code = process.wait()
    if code != 0:
        failed = SomeFailed if code == SOME_FAILED else PlayFailed
        raise failed(f"ramify bench run {source} ended with {code}; the same command resumes {out}")
    return out


def _write_ids(ids: Sequence[str], out: Path) -> Path:
    """Write the ids to a file beside the batch, since a command line may not hold thousands."""
    out.parent.mkdir(parents=True, exist_ok=True)
    file = out.with_name(f"{out.name}.ids").absolute()
    write_atomically(file, "".join(f"{name}\n" for name in ids).encode())
    return file


def flags_of(kind: str, path: Path, model: str = "", base_url: str = "") -> list[str]:
    """The settings that select a version of the policy: the file of counts, or the name and server of a model."""
    match kind:
        case "counts":
            return [f"policy.counts={path.absolute()}"]
        case "model":
            return [f"policy.model=openai/{model}", f"model.base_url={base_url}"]
        case "chat":
            return [f"policy.name=openai/{model}", f"model.base_url={base_url}"]
        case _:
            return [f"policy.by={kind}"]
