"""Playing: the searches of one policy on a source, as a batch of `ramify bench run` that can be resumed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.errors import RamifyError
from agent.files import write_atomically
from agent.learning.managed_process import gone_after, leaving_by_signals

__all__ = ["Conditions", "PlayFailed", "SomeFailed", "flags_of", "play"]

SOME_FAILED = 1
"""What `ramify bench run` ends with where not all instances came to an end."""


class PlayFailed(RamifyError):
    """A batch could not be run."""


class SomeFailed(PlayFailed):
    """A batch was run, and some of its searches failed for reasons of the world's."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What is the same for all policies that are compared."""

    max_tried: int = 60
    """States that a search may try."""
    width: int = 200
    """Edits of a state that are ranked."""
    workers: int = 1
    part: str = ""
    """Only this part of the source, as `--slice` has it, where no ids are named."""
    settings: tuple[str, ...] = ()
    """Further `KEY=VALUE` of all searches."""


def play(source: Path, out: Path, flags: Sequence[str], given: Conditions, ids: Sequence[str] = ()) -> Path:
    """The batch, run to its end.

    Raises:
        SomeFailed: not all searches came to an end.
        PlayFailed: `ramify bench run` failed; its words are on stderr.
    """
    command = [sys.executable, "-m", "agent", "bench", "run", str(source), "--out", str(out), "--reveal-tests"]
    command += ["--policy", "edit", "--workers", str(given.workers), "--max-nodes", str(given.max_tried + 1)]
    command += ["--search", "best_first", "-c", f"policy.width={given.width}"]
    if ids:
        command += ["--ids", f"@{_listed(ids, out)}"]
    elif given.part:
        command += [f"--slice={given.part}"]
    for setting in (*given.settings, *flags):
        command += ["-c", setting]
    env = {"OPENAI_API_KEY": "none"} | os.environ  # our own server asks for no key, the client for any
    with leaving_by_signals():
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=env, start_new_session=True)
        with gone_after(process, alone=True):
            code = process.wait()
    if code != 0:
        failed = SomeFailed if code == SOME_FAILED else PlayFailed
        raise failed(f"ramify bench run {source} ended with {code}; the same command resumes {out}")
    return out


def _listed(ids: Sequence[str], out: Path) -> Path:
    """A file of the ids beside the batch: thousands are more than a command line holds."""
    out.parent.mkdir(parents=True, exist_ok=True)
    listed = out.with_name(f"{out.name}.ids").absolute()
    write_atomically(listed, "".join(f"{name}\n" for name in ids).encode())
    return listed


def flags_of(kind: str, path: Path, model: str = "", base_url: str = "") -> list[str]:
    """The settings that make a version of the policy: of counts the file, of a model its name and server."""
    match kind:
        case "counts":
            return [f"policy.counts={path.absolute()}"]
        case "model":
            return [f"policy.model=openai/{model}", f"model.base_url={base_url}"]
        case _:
            return [f"policy.by={kind}"]
