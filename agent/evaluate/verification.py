"""Verification: the patch of a state, applied to the base state in a fresh fork, and the whole suite run on that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from agent.measure import SuiteReport
from agent.run.temporary_snapshots import TemporarySnapshots
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.tree import Node
from sandboxes import Provider, Sandbox, SandboxError, Snapshot
from sandboxes.git.diff import Side, applied

__all__ = ["NO_GIT", "Judgement", "Verdict", "apply_patch", "verify"]

PATCH_FILE = "/tmp/.ramify.patch"  # noqa: S108  # inside the sandbox, where nobody else is
NO_GIT = "git is not in the sandbox"
_ALONE = dict.fromkeys(("GIT_DIR", "HOME", "XDG_CONFIG_HOME"), "/nonexistent") | {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
}
"""Git takes a patch as it is: there is no repository whose root, settings or attributes could change what it means."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A whole run of the suite and what follows from it."""

    report: SuiteReport
    evaluation: Evaluation
    improved: bool
    """Nothing broke, and where a goal is known, more of them pass than before."""
    broken: tuple[str, ...] = ()
    """Tests that passed in the base state and do not pass any more."""
    remarks: tuple[str, ...] = ()
    """What people should know of the patch: existing tests that it changes."""
    runs: int = 1
    """Runs of the suite that it took."""


class Suite(Protocol):
    """Runs the whole suite in a state, afresh."""

    def judge(self, snapshot: Snapshot, path: tuple[Node, ...], before: SuiteReport) -> Judgement:
        """Measure, evaluate and guard a state below `path`, of whose patch a search has the report `before`."""
        ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """What verification said of a state."""

    patch: bytes
    solved: bool = False
    improved: bool = False
    broken: tuple[str, ...] = ()
    """As in `Judgement`."""
    applied: bool = False
    """Whether there is a patch, and it applies to the base state."""
    invalid: bool = False
    """Its tests give no valid result."""
    remarks: tuple[str, ...] = ()
    why: str = ""
    """Why it is neither, for people."""
    final: Mapping[str, int] = field(default_factory=dict)
    """Tests passed and failed with the patch."""
    flaky: tuple[str, ...] = ()
    """Tests that failed once and passed twice with the patch."""
    scope: str = ""
    """On which tests it rests; empty: on all."""
    measurements: int = 0

    def to_note(self, patch_blob: str) -> dict[str, Any]:
        """The form that a journal keeps, with the patch in a blob."""
        return {
            "patch": patch_blob,
            "solved": self.solved,
            "improved": self.improved,
            "broken": list(self.broken),
            "applied": self.applied,
            "invalid": self.invalid,
            "remarks": list(self.remarks),
            "why": self.why,
            "final": dict(self.final),
            "flaky": list(self.flaky),
            "scope": self.scope,
        }


def verify(provider: Provider, root: Node, node: Node, patch: bytes, suite: Suite) -> Verdict:
    """Whether the node's patch against the root, and nothing else of its state, does what the state did."""
    base = root.snapshot
    if not patch:
        return Verdict(patch, why="the state differs from the base in nothing that a patch can hold")
    with TemporarySnapshots(provider) as made:
        patched, why = apply_patch(provider, base, patch)
        if patched is None:
            return Verdict(patch, why=f"the patch does not apply to the base: {why}")
        judgement = suite.judge(made.add(patched), (root,), node.report)
    report = judgement.report
    return Verdict(
        patch=patch,
        solved=judgement.evaluation.solved,
        improved=judgement.improved,
        broken=judgement.broken,
        applied=True,
        invalid=not report.valid,
        remarks=judgement.remarks,
        why=judgement.evaluation.notes,
        final={"passed": len(report.passes), "failed": len(report.failures)},
        flaky=report.flaky,
        scope=report.scope,
        measurements=judgement.runs,
    )


def apply_patch(provider: Provider, base: Snapshot, patch: bytes) -> tuple[Snapshot | None, str]:
    """The state that a git patch makes of a base; none, and why, where git does not apply it or is not there."""
    with provider.at(base) as box:
        box.write(PATCH_FILE, patch)
        done = box.exec(["git", "apply", "--whitespace=nowarn", PATCH_FILE], timeout_s=60, env=_ALONE)
        if done.exit_code == 127:
            box.remove(PATCH_FILE)
            return _applied_from_here(box, patch)
        if done.exit_code != 0:
            return None, (done.stderr or NO_GIT.encode()).decode(errors="replace").strip()
        box.remove(PATCH_FILE)
        return box.snapshot(), ""


def _applied_from_here(box: Sandbox, patch: bytes) -> tuple[Snapshot | None, str]:
    """The same by this machine's git, over copies of the files that the patch touches."""
    try:
        made = applied(patch, partial(_side, box))
    except SandboxError as error:
        return None, f"{NO_GIT}: {error}"
    for each in made:
        if each.new is None:
            box.remove(each.path)
        elif each.new.kind == "l":
            return None, f"{NO_GIT}: {each.path} is a link, which cannot be made without it"
        else:
            box.write(each.path, each.new.content, executable=bool(each.new.mode & 0o100))
    return box.snapshot(), ""


def _side(box: Sandbox, path: str) -> Side | None:
    try:
        content = box.read(path)
    except FileNotFoundError:
        return None
    runs = box.exec(["/bin/sh", "-c", 'test -x "$1"', "sh", path], timeout_s=60).exit_code == 0
    return Side("f", 0o755 if runs else 0o644, content)
