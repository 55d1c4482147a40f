"""Verification: apply the patch of a state to the base state in a fresh fork, and run the whole suite there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from agent.measure import SuiteReport
from agent.parsing import adapter
from agent.run.temporary_snapshots import TemporarySnapshots
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Node
from sandboxes import Provider, Sandbox, SandboxError, Snapshot
from sandboxes.git.diff import Side, applied

PATCH_FILE = "/tmp/.ramify.patch"  # noqa: S108  # inside the sandbox, where nobody else is
NO_GIT = "git is not in the sandbox"
_ALONE = dict.fromkeys(("GIT_DIR", "HOME", "XDG_CONFIG_HOME"), "/nonexistent") | {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
}
"""Git applies a patch literally: no repository's root, settings or attributes can change its meaning."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """A run of the whole suite and the conclusions from it."""

    report: SuiteReport
    evaluation: Evaluation
    improved: bool
    """Whether nothing broke and, if there are goals, more of them pass than before."""
    broken: tuple[str, ...] = ()
    """Tests that passed in the base state and no longer pass."""
    remarks: tuple[str, ...] = ()
    """Remarks on the patch for people: existing tests that it changes."""
    runs: int = 1
    """The number of suite runs that this took."""


class Verifier(Protocol):
    """Runs the whole suite in a state, ignoring earlier results."""

    def assess(self, snapshot: Snapshot, path: tuple[Node, ...], before: SuiteReport) -> Assessment:
        """Measure, evaluate and guard a state below `path`. `before` is the search's report of the same patch."""
        ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a verification."""

    patch: bytes
    solved: bool = False
    improved: bool = False
    broken: tuple[str, ...] = ()
    """As in `Assessment`."""
    applied: bool = False
    """Whether there is a patch, and it applies to the base state."""
    invalid: bool = False
    """Whether the tests with the patch gave no valid result."""
    remarks: tuple[str, ...] = ()
    why: str = ""
    """Why it is neither solved nor improved, for people."""
    final: Mapping[str, int] = field(default_factory=dict)
    """The numbers of tests that passed and failed with the patch."""
    flaky: tuple[str, ...] = ()
    """Tests that failed once and passed twice with the patch."""
    scope: str = ""
    """The tests that were run; empty means all."""
    measurements: int = 0

    def to_note(self, patch_blob: str) -> dict[str, Any]:
        """The form for the journal, with the patch in a blob."""
        facts = adapter(Verdict).dump_python(self, mode="json", exclude={"patch", "measurements"})
        return {"patch": patch_blob, **facts}


def verify(provider: Provider, root: Node, node: Node, patch: bytes, verifier: Verifier) -> Verdict:
    """Check whether the node's patch alone, applied to the root, reproduces what the node's state achieved."""
    base = root.snapshot
    if not patch:
        return Verdict(patch, why="nothing in which the state differs from the base can be put into a patch")
    with TemporarySnapshots(provider) as temporary:
        patched, why = apply_patch(provider, base, patch)
        if patched is None:
            return Verdict(patch, why=f"the patch does not apply to the base: {why}")
        assessment = verifier.assess(temporary.add(patched), (root,), node.report)
    report = assessment.report
    return Verdict(
        patch=patch,
        solved=assessment.evaluation.solved,
        improved=assessment.improved,
        broken=assessment.broken,
        applied=True,
        invalid=not report.valid,
        remarks=assessment.remarks,
        why=assessment.evaluation.notes,
        final={"passed": len(report.passes), "failed": len(report.failures)},
        flaky=report.flaky,
        scope=report.scope,
        measurements=assessment.runs,
    )


def apply_patch(provider: Provider, base: Snapshot, patch: bytes) -> tuple[Snapshot | None, str]:
    """The base state with a git patch applied, or None and the reason if git does not apply it. A sandbox without git
    is patched by this machine's git."""
    with provider.at(base) as box:
        box.write(PATCH_FILE, patch)
        result = box.exec(["git", "apply", "--whitespace=nowarn", PATCH_FILE], timeout_s=60, env=_ALONE)
        if result.exit_code == 127:
            box.remove(PATCH_FILE)
            return _applied_from_here(box, patch)
        if result.exit_code != 0:
            return None, (result.stderr or NO_GIT.encode()).decode(errors="replace").strip()
        box.remove(PATCH_FILE)
        return box.snapshot(), ""


def _applied_from_here(box: Sandbox, patch: bytes) -> tuple[Snapshot | None, str]:
    """As `apply_patch`, by this machine's git on copies of the files that the patch touches."""
    try:
        files = applied(patch, partial(_side, box))
    except SandboxError as error:
        return None, f"{NO_GIT}: {error}"
    for file in files:
        if file.new is None:
            box.remove(file.path)
        elif file.new.kind == "l":
            return None, f"{NO_GIT}: {file.path} is a link, which cannot be made without it"
        else:
            box.write(file.path, file.new.content, executable=bool(file.new.mode & 0o100))
    return box.snapshot(), ""


def _side(box: Sandbox, path: str) -> Side | None:
    try:
        content = box.read(path)
    except FileNotFoundError:
        return None
    executable = box.exec(["/bin/sh", "-c", 'test -x "$1"', "sh", path], timeout_s=60).exit_code == 0
    return Side("f", 0o755 if executable else 0o644, content)
