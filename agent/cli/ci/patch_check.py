"""Checks whether a patch changes more than source code and therefore needs a review.

Invariant: git itself applies the patch, to a separate index and object store, and lists what changed. The text of the
patch is not parsed, and the checkout is only read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal, get_args

from agent.errors import UsageError
from agent.untrusted import escaped, visible
from sandboxes import GitFailed
from sandboxes.git.command import Git
from sandboxes.git.foreign import locate, opened

Rule = Literal["ci", "git", "lock", "tools", "symlink", "mode", "submodule", "big", "name", "hidden"]
"""A rule that a patch can break; the user can allow each."""
RULES: tuple[Rule, ...] = get_args(Rule)
BIG_BYTES = 1_000_000
"""The size above which a file is big."""

_PATTERNS: dict[Rule, tuple[str, ...]] = {
    "ci": (
        ".github/*", ".gitlab-ci.yml", ".gitlab/*", ".gitea/*", ".forgejo/*", ".circleci/*", ".travis.yml",
        "azure-pipelines*.y*ml", ".azure-pipelines/*", "jenkinsfile*", "bitbucket-pipelines.yml", ".buildkite/*",
        ".drone.y*ml", ".woodpecker*", "appveyor.yml", ".appveyor.yml", ".cirrus.yml", ".builds/*", ".build.yml",
        ".tekton/*", ".semaphore/*", "buildspec*.y*ml", "cloudbuild*.y*ml", "action.y*ml", ".pre-commit-config.yaml",
    ),
    "git": (
        ".gitattributes", ".gitignore", ".gitmodules", ".gitconfig", ".lfsconfig", ".githooks/*", ".husky/*",
        "lefthook*.*", ".lefthook*",
    ),
    "lock": (
        "*.lock", "*.lockb", "*.lockfile", "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "go.sum",
        "packages.lock.json", "requirements*.txt", "constraints*.txt", ".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/*",
        ".pnpmfile.cjs", "bunfig.toml", "pip.conf", "gradle-wrapper.properties", "gradle-wrapper.jar",
        "maven-wrapper.properties", "maven-wrapper.jar",
    ),
    "tools": (
        "agents.md", "claude.md", "gemini.md", ".claude/*", ".cursor/*", ".cursorrules", ".windsurf/*",
        ".windsurfrules", ".clinerules*", ".roo*", ".aider*", ".codex/*", ".gemini/*", ".zed/*", ".mcp.json",
        ".vscode/*", "*.code-workspace", ".idea/*", ".devcontainer/*", ".devcontainer.json", ".envrc", "mise*.toml",
        ".mise*.toml", ".mise/*",
    ),
}  # fmt: skip
_WHY: dict[Rule, str] = {
    "ci": "it decides what the pipeline runs",
    "git": "it decides what git does",
    "lock": "it decides which packages are installed",
    "tools": "editors and coding agents take instructions from it",
}
_MALFORMED = (
    "No valid patches", "unrecognized input", "corrupt patch", "patch fragment without header",
    "patch with only garbage", "git diff header lacks",
)  # fmt: skip
"""How git's errors begin if the input is not a patch at all (as opposed to a patch that does not apply)."""
_LINK, _MODULE, _NOTHING = "120000", "160000", "000000"
_MOST_LINKS = 20
"""A link that passes more links than this counts as leading out."""
_SHOWN = 120
"""The maximum number of characters quoted from a line."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A reason not to propose a patch."""

    rule: Rule | Literal["apply"]
    """The rule that the patch breaks. `apply`: git does not accept the patch, which the user cannot allow."""
    path: str
    """The path from the root, with invisible characters escaped; empty for the patch as a whole."""
    reason: str

    def __str__(self) -> str:
        return f"{self.rule:<9} {f'{self.path}: ' if self.path else ''}{self.reason}"


@dataclass(frozen=True, slots=True)
class _Changed:
    """One entry of `git diff-index --raw`."""

    old_mode: str
    new_mode: str
    old_blob: str
    blob: str
    path: str


def check(
    repo: Path, patch: bytes, *, base: str = "HEAD", allow: frozenset[Rule] = frozenset(), big_bytes: int = BIG_BYTES
) -> tuple[Finding, ...]:
    """Return all reasons not to propose the patch for the commit `base`, by path. An empty patch has none.

    Raises:
        agent.errors.UsageError: `patch` is not a git patch; `repo` is not a git repository, or has no such commit.
        sandboxes.SandboxError: git cannot read the repository.
    """
    if not patch.strip():
        return ()
    repository = locate(repo)
    if repository is None:
        raise UsageError(f"{repo} is not a git repository")
    with opened(repository) as view:
        commit = view.commit(base)
        if not commit:
            raise UsageError(f"{repo} has no commit {base!r}")
        view.git.run("read-tree", commit)
        return _applied(view.git, patch, commit, allow, big_bytes)


def _applied(git: Git, patch: bytes, commit: str, allow: frozenset[Rule], big_bytes: int) -> tuple[Finding, ...]:
    try:
        git.run("apply", "--cached", "--whitespace=nowarn", stdin=patch)
    except GitFailed as error:
        reason = escaped(error.said.splitlines()[0].removeprefix("error: "))
        if reason.startswith(_MALFORMED):
            reason = reason.partition(" (")[0]
            raise UsageError(f"this is not a git patch ({reason}): make one with `git diff --binary`") from error
        return (Finding("apply", "", reason),)
    findings = (finding for changed in _changes(git, commit) for finding in _findings(git, changed, big_bytes))
    return tuple(finding for finding in findings if finding.rule not in allow)


def _changes(git: Git, commit: str) -> Iterator[_Changed]:
    raw = git.run("diff-index", "--cached", "--raw", "-z", "--no-renames", "--full-index",
                  "--ignore-submodules=none", commit, "--")  # fmt: skip
    facts, paths = raw.split(b"\0")[::2], raw.split(b"\0")[1::2]
    for fact, path in zip(facts, paths, strict=False):
        old_mode, new_mode, old_blob, blob, _ = fact.decode("ascii").lstrip(":").split(" ")
        yield _Changed(old_mode, new_mode, old_blob, blob, path.decode("utf-8", "surrogateescape"))


def _findings(git: Git, changed: _Changed, big_bytes: int) -> Iterator[Finding]:
    path = escaped(changed.path)
    if path != changed.path:
        yield Finding("name", path, "its name has invisible or control characters")
    for rule, patterns in _PATTERNS.items():
        if _any(changed.path, patterns):
            yield Finding(rule, path, _WHY[rule])
    for rule, reason in _of_kind(git, changed, big_bytes):
        yield Finding(rule, path, reason)


def _of_kind(git: Git, changed: _Changed, big_bytes: int) -> Iterator[tuple[Rule, str]]:
    old, new = changed.old_mode, changed.new_mode
    if _MODULE in (old, new):
        yield "submodule", "it adds another repository, or changes the commit of one"
        return
    if new == _NOTHING:
        return
    if old not in (new, _NOTHING):
        yield "mode", f"its mode changes from {old} to {new}"
    elif old == _NOTHING and new == "100755":
        yield "mode", "a new file is executable"
    if new == _LINK and _leads_out(git, changed.path, target := _blob(git, changed.blob)):
        yield "symlink", f"it may lead out of the repository: to {escaped(target)}"
    if (size := int(git.run("cat-file", "-s", changed.blob))) > big_bytes:
        yield "big", f"it has {size} bytes, more than {big_bytes}"
    elif new != _LINK and (line := _hidden(git, changed)):
        yield "hidden", f"a new line has invisible characters: {line}"


def _blob(git: Git, name: str) -> str:
    return os.fsdecode(git.run("cat-file", "blob", name))


def _hidden(git: Git, changed: _Changed) -> str:
    """Return the first new line that has invisible characters, with these escaped; empty if there is none."""
    blobs = [changed.blob, *([changed.old_blob] if changed.old_mode != _NOTHING else [])]
    after, *before = (_blob(git, blob).removeprefix("\ufeff") for blob in blobs)
    if "\0" in after or visible(after) == after:
        return ""
    old = {line for text in before for line in text.splitlines()}
    new = (line for line in after.splitlines() if line not in old)
    return next((escaped(line)[:_SHOWN] for line in new if visible(line) != line), "")


def _leads_out(git: Git, path: str, target: str, most_links: int = _MOST_LINKS) -> bool:
    """Whether a link at `path` may lead out of the repository or into a `.git`. The folders of `path` are no links,
    because git puts nothing behind a link; the target may therefore start with as many `..` as there are folders. Later
    parts may be links, which are followed, but not `..`."""
    parts = [part for part in target.split("/") if part not in ("", ".")]
    climbs = next((index for index, part in enumerate(parts) if part != ".."), len(parts))
    folders = path.split("/")[:-1]
    if target.startswith("/") or climbs > len(folders) or ".." in parts[climbs:] or not most_links:
        return True
    target_parts = folders[: len(folders) - climbs] + parts[climbs:]
    if any(part.casefold() == ".git" for part in target_parts):
        return True
    passed = ["/".join(target_parts[: end + 1]) for end in range(len(target_parts))]
    return any(_leads_out(git, place, next_target, most_links - 1) for place, next_target in _links(git, passed))


def _links(git: Git, paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield those of `paths` that are links in the patched tree, with their targets."""
    if not paths:
        return
    for entry in git.run("ls-files", "--stage", "-z", "--", *paths).split(b"\0"):
        facts, _, path = os.fsdecode(entry).partition("\t")
        if facts.startswith(_LINK) and path in paths:
            yield path, _blob(git, facts.split(" ")[1])


def _any(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether a pattern matches the path or an end of it, because a nested package may have its own pipeline. Case is
    ignored, because some file systems ignore it."""
    parts = path.casefold().split("/")
    ends = ["/".join(parts[index:]) for index in range(len(parts))]
    return any(fnmatch(end, pattern) for end in ends for pattern in patterns)
