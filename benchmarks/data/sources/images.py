"""The image that holds the checkout of a row, and what is done to the checkout before a solver sees it.

Precedence of images: `--image` on the command line, then the row's own, then the one that the set's rule derives.
"""

from __future__ import annotations

from shlex import quote

from benchmarks.data.sources.columns import Row, first
from sandboxes import Workspace

GIT = """set -e
git() { command git -c safe.directory='*' -c user.name=ramify -c user.email=ramify@localhost "$@"; }
"""
"""The beginning of a script that commits in a checkout, which may belong to another user."""

SEALED = """set -e
git() { command git -c safe.directory='*' "$@"; }
git checkout -q --detach
git remote | while read -r remote; do git remote remove "$remote"; done
{ git for-each-ref --format='delete %(refname)'; git for-each-ref --merged HEAD --format='delete %(refname)'; } |
    sort | uniq -u | git update-ref --no-deref --stdin
folder=$(git rev-parse --git-dir)
rm -rf "$folder"/FETCH_HEAD "$folder"/ORIG_HEAD "$folder"/objects/info/commit-graph*
git reflog expire --expire=now --all
git gc -q --prune=now"""
"""Removes from the repository all objects that HEAD does not reach, since they may hold the solution. Tags before HEAD
stay, since version numbers are derived from them."""

SEALED_WHERE_KEPT = f"test ! -e .git || {{\n{SEALED}\n}}"
"""The same as `SEALED`, for an image whose workspace need not be a repository."""

SINGLE_COMMIT = (
    GIT
    + """git checkout -q --detach "$(git commit-tree -m base "HEAD^{tree}")"
git for-each-ref --format='delete %(refname)' | git update-ref --no-deref --stdin"""
)
"""Makes HEAD the only commit, for histories that reveal which change to undo; runs before `SEALED`."""


def applying(patch: bytes) -> str:
    """A command that commits a patch, so that no diff against HEAD shows it."""
    return f"""{GIT}git update-index -q --refresh || true
{_printed(patch)} | git apply --index --whitespace=nowarn -
git commit -q --no-verify -m base"""


def undoing(patch: bytes) -> str:
    """A command that reverts a patch."""
    return f"{GIT}{_printed(patch)} | git apply -R --whitespace=nowarn -"


def _printed(patch: bytes) -> str:
    return f"printf %s {quote(patch.decode('utf-8', 'surrogateescape'))}"


TESTBED = "/testbed"
"""Where SWE-bench's images hold the checkout."""


def checked_out(image: str, *setup: str, mount: str = TESTBED) -> Workspace:
    """A workspace with the repository that an image holds at `mount`, after these commands and `SEALED`."""
    return Workspace(image=image, mount=mount, setup=(*setup, SEALED))


def published(instance_id: str, *, owner: str = "swebench", joint: str = "_1776_") -> str:
    """The published name of an instance's image. Docker Hub allows neither `__` nor capital letters."""
    return f"docker.io/{owner}/sweb.eval.x86_64.{instance_id.lower().replace('__', joint)}:latest"


def image_of(row: Row, derived: str) -> str:
    """The image that a row names, else the derived one."""
    return qualified(first(row, "image", "image_name", "docker_image") or derived)


def qualified(name: str) -> str:
    """The name with its registry, since not every engine adds it. A name without an owner is a local image."""
    host = name.partition("/")[0]
    if "/" not in name or "." in host or ":" in host or host == "localhost":
        return name
    return f"docker.io/{name}"
