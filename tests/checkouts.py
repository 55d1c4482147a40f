"""Every kind of checkout that git makes, each with the small project of `tests.projects` in it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.projects import SOURCE, TESTS, commit, git, means

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 3\n"
RAN = "ran"
"""A file beside the checkout that the repository's filter makes when it runs."""


def plain(here: Path) -> Path:
    return means(here / "repo")


def linked_worktree(here: Path) -> Path:
    git(means(here / "repo"), "worktree", "add", "-q", "../wt", "-b", "side")
    return here / "wt"


def worktree_of_a_bare_repository(here: Path) -> Path:
    git(here, "clone", "-q", "--bare", str(means(here / "repo")), ".bare")
    git(here / ".bare", "worktree", "add", "-q", "../wt")
    return here / "wt"


def worktree_with_settings_of_its_own(here: Path) -> Path:
    checkout = worktree_of_a_bare_repository(here)
    git(here / ".bare", "config", "extensions.worktreeConfig", "true")
    git(here / ".bare", "config", "--worktree", "core.bare", "true")
    git(here / ".bare", "config", "--unset", "core.bare")
    git(checkout, "config", "--worktree", "core.filemode", "true")
    return checkout


def submodule(here: Path) -> Path:
    origin, outer = means(here / "repo"), commit(here / "outer", {"README": "outer\n"})
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(origin), "sub")
    git(outer, "commit", "-qm", "a submodule")
    return outer / "sub"


def separate_git_directory(here: Path) -> Path:
    git(here, "clone", "-q", "--separate-git-dir=elsewhere", str(means(here / "repo")), "clone")
    return here / "clone"


def shallow_clone(here: Path) -> Path:
    origin = means(here / "repo")
    git(origin, "commit", "-q", "--allow-empty", "-m", "later")
    git(here, "clone", "-q", "--depth=1", f"file://{origin}", "clone")
    return here / "clone"


def partial_clone(here: Path, filtered: str = "blob:none", *options: str) -> Path:
    origin = means(here / "repo")
    (origin / "old").mkdir()
    (origin / "old" / "notes.txt").write_text("notes\n")
    git(origin, "add", "-A")
    git(origin, "commit", "-qm", "notes")
    (origin / "old" / "notes.txt").write_text("newer notes\n")
    git(origin, "commit", "-qam", "newer notes")
    git(origin, "config", "uploadpack.allowFilter", "true")
    git(here, "clone", "-q", f"--filter={filtered}", *options, f"file://{origin}", "clone")
    return here / "clone"


def partial_clone_without_trees(here: Path) -> Path:
    return partial_clone(here, "tree:0")


def sparse_checkout(here: Path) -> Path:
    checkout = means(here / "repo")
    for name in ("docs/page.md", "src/deep/more.txt"):
        (checkout / name).parent.mkdir(parents=True)
        (checkout / name).write_text("text\n")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-qm", "more")
    git(checkout, "sparse-checkout", "set", "--cone", "docs")
    return checkout


def sparse_index(here: Path) -> Path:
    checkout = sparse_checkout(here)
    git(checkout, "sparse-checkout", "reapply", "--sparse-index")
    return checkout


def sparse_index_of_a_partial_clone(here: Path) -> Path:
    checkout = partial_clone(here, "tree:0", "--sparse")
    git(checkout, "sparse-checkout", "reapply", "--sparse-index")
    return checkout


def sparse_worktree(here: Path) -> Path:
    git(sparse_checkout(here), "worktree", "add", "-q", "../wt")
    git(here / "wt", "sparse-checkout", "set", "--cone", "--sparse-index", "src")
    return here / "wt"


def split_index(here: Path) -> Path:
    checkout = means(here / "repo")
    git(checkout, "update-index", "--split-index")
    (checkout / "more.txt").write_text("more\n")
    git(checkout, "add", "-A")
    return checkout


def clone_that_shares_objects(here: Path) -> Path:
    git(here, "clone", "-q", "--shared", str(means(here / "repo")), "clone")
    return here / "clone"


def sha256(here: Path) -> Path:
    checkout = means(here / "repo")
    shutil.rmtree(checkout / ".git")
    git(checkout, "init", "-q", "--object-format=sha256")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-qm", "all")
    return checkout


def worktree_with_sha256(here: Path) -> Path:
    git(sha256(here), "worktree", "add", "-q", "../wt")
    return here / "wt"


def of_another_user(here: Path) -> Path:
    checkout = means(here / "repo")
    for place in (checkout, *checkout.rglob("*")):
        os.lchown(place, 4321, 4321)
    return checkout


def large_files_as_pointers(here: Path) -> Path:
    checkout = commit(here / "repo", {"means.py": SOURCE, "test_means.py": TESTS, "data.bin": POINTER})
    (checkout / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-qm", "attributes")
    return checkout


def large_files_with_a_filter(here: Path) -> Path:
    checkout = large_files_as_pointers(here)
    pointer = here / "pointer"
    pointer.write_text(POINTER)
    git(checkout, "config", "filter.lfs.clean", f"touch {here / RAN}; cat >/dev/null; cat {pointer}")
    git(checkout, "config", "filter.lfs.smudge", f"touch {here / RAN}; cat >/dev/null; echo 123")
    git(checkout, "config", "filter.lfs.required", "true")
    (checkout / "data.bin").write_text("123")
    git(checkout, "add", "-A")
    (here / RAN).unlink()
    os.utime(checkout / "data.bin", (0, 0))  # git would have to look at the content again
    return checkout


def converted_files(here: Path) -> Path:
    """git keeps another text than the files have: line ends and `$Id$`."""
    checkout = commit(here / "repo", {".gitattributes": "*.py text eol=crlf ident\n"})
    (checkout / "means.py").write_text(f'"""$Id$"""\n{SOURCE}')
    (checkout / "test_means.py").write_text(TESTS)
    git(checkout, "add", "-A")
    git(checkout, "commit", "-qm", "all")
    for name in ("means.py", "test_means.py"):
        (checkout / name).unlink()
    git(checkout, "checkout", "-q", ".")
    assert b"$Id: " in (checkout / "means.py").read_bytes()
    assert b"\r\n" in (checkout / "means.py").read_bytes()
    return checkout


def without_a_commit(here: Path) -> Path:
    checkout = means(here / "repo")
    shutil.rmtree(checkout / ".git")
    git(checkout, "init", "-q")
    git(checkout, "add", "-A")
    return checkout


def in_the_midst_of_a_merge(here: Path) -> Path:
    checkout = means(here / "repo")
    for branch, text in (("one", "1\n"), ("two", "2\n")):
        git(checkout, "checkout", "-q", "-b", branch, "main")
        (checkout / "text.txt").write_text(text)
        git(checkout, "add", "-A")
        git(checkout, "commit", "-qm", branch)
    failed = subprocess.run(["git", "merge", "-q", "one"], cwd=checkout, capture_output=True, check=False)
    assert failed.returncode == 1
    return checkout


BY_COMMAND = (
    linked_worktree,
    submodule,
    partial_clone,
    of_another_user,
    large_files_with_a_filter,
    converted_files,
    without_a_commit,
)
"""Builders: each makes its checkout, and all that belongs to it, in an empty directory. The command runs in these."""
OTHERS = (
    worktree_of_a_bare_repository,
    shallow_clone,
    sparse_checkout,
    sparse_index,
    sha256,
    large_files_as_pointers,
    worktree_with_settings_of_its_own,
    worktree_with_sha256,
    sparse_worktree,
    separate_git_directory,
    partial_clone_without_trees,
    sparse_index_of_a_partial_clone,
    split_index,
    clone_that_shares_objects,
    in_the_midst_of_a_merge,
)
ELSEWHERE = (
    linked_worktree,
    worktree_of_a_bare_repository,
    worktree_with_settings_of_its_own,
    worktree_with_sha256,
    sparse_worktree,
    submodule,
)
"""Those whose git directory lies elsewhere."""


def damaged_index(here: Path) -> Path:
    (plain(here) / ".git" / "index").write_bytes(b"DIRC" + b"\xff" * 60)
    return here / "repo"


def damaged_index_of_a_worktree(here: Path) -> Path:
    (linked_worktree(here).parent / "repo" / ".git" / "worktrees" / "wt" / "index").write_bytes(b"no index")
    return here / "wt"


def damaged_config(here: Path) -> Path:
    with (plain(here) / ".git" / "config").open("a") as file:
        file.write("[core\nbare\n")
    return here / "repo"


def damaged_head(here: Path) -> Path:
    (plain(here) / ".git" / "HEAD").write_text("nonsense\n")
    return here / "repo"


def git_file_that_points_nowhere(here: Path) -> Path:
    git(plain(here), "worktree", "add", "-q", "../wt")
    shutil.rmtree(here / "repo")
    return here / "wt"


def git_file_with_nonsense(here: Path) -> Path:
    shutil.rmtree(plain(here) / ".git")
    (here / "repo" / ".git").write_bytes(b"\xff\0")
    return here / "repo"


def empty_git_directory(here: Path) -> Path:
    shutil.rmtree(plain(here) / ".git")
    (here / "repo" / ".git").mkdir()
    return here / "repo"


def git_file_with_an_impossible_path(here: Path) -> Path:
    shutil.rmtree(plain(here) / ".git")
    (here / "repo" / ".git").write_bytes(b"gitdir: a\0b\n")
    return here / "repo"


DAMAGED = (
    damaged_index,
    damaged_index_of_a_worktree,
    damaged_config,
    damaged_head,
    git_file_that_points_nowhere,
    git_file_with_nonsense,
    empty_git_directory,
    git_file_with_an_impossible_path,
)
"""Builders of what git cannot read."""
