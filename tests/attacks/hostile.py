"""Repositories that have git run a program, each by another of git's ways to be told of one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.projects import commit, git

PATCH = "fix.diff"
"""Lies beside the repository."""
HOOKS = (
    *(
        "applypatch-msg",
        "pre-applypatch",
        "post-applypatch",
        "pre-commit",
        "post-commit",
        "post-checkout",
        "post-merge",
    ),
    *("pre-auto-gc", "post-rewrite", "post-index-change", "reference-transaction", "pre-push", "fsmonitor-watchman"),
)


@dataclass(frozen=True)
class Hostile:
    """A way, and the commands of git that show that it works."""

    make: Callable[[Path, str], None]
    """What it does to a repository so that a program is run."""
    controls: tuple[tuple[str, ...], ...] = (("status",),)
    whole: bool = True
    """Git can read the repository without running the program."""


def template(repo: Path, files: dict[str, str]) -> Path:
    """A repository with these files, two folders, and a patch beside it that takes one of them away."""
    commit(repo, {**files, "kept/a.py": "A = 1\n", "left/b.py": "B = 1\n"})
    (repo / "kept" / "a.py").write_text("A = 2\n")
    (repo.parent / PATCH).write_text(git(repo, "diff", "--full-index"))
    git(repo, "checkout", "-q", "--", ".")
    return repo


def config(repo: Path, *lines: str, file: str = ".git/config") -> None:
    """Add lines to the settings."""
    with (repo / file).open("a") as settings:
        settings.write("".join(f"{line}\n" for line in lines))


def hook(folder: Path, program: str, *names: str) -> None:
    """Make hooks of a program."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(f'#!/bin/sh\nexec {program} "$@"\n')
        (folder / name).chmod(0o755)


def driver(kind: str, program: str) -> tuple[str, str]:
    return '[filter "x"]', f"\t{kind} = {program} filter"


def attributes(repo: Path, text: str = "* filter=x\n", file: str = ".git/info/attributes") -> None:
    (repo / file).write_text(text)


def clean(repo: Path, program: str) -> None:
    attributes(repo, file=".gitattributes")
    config(repo, *driver("clean", program))


def clean_by_info(repo: Path, program: str) -> None:
    attributes(repo)
    config(repo, *driver("clean", program))


def clean_by_include(repo: Path, program: str) -> None:
    attributes(repo)
    config(repo, *driver("clean", program), file="included")
    config(repo, "[include]", "\tpath = ../included")


def clean_by_condition(repo: Path, program: str) -> None:
    attributes(repo)
    config(repo, *driver("clean", program), file="included")
    config(repo, '[includeIf "gitdir:**"]', "\tpath = ../included")


def clean_by_work_tree(repo: Path, program: str) -> None:
    attributes(repo)
    config(repo, "[core]", "\trepositoryformatversion = 1", "[extensions]", "\tworktreeConfig = true")
    config(repo, *driver("clean", program), file=".git/config.worktree")


def smudge(repo: Path, program: str) -> None:
    attributes(repo)
    config(repo, *driver("smudge", program))


def process(repo: Path, program: str) -> None:
    attributes(repo)
    config(repo, *driver("process", program))


def monitor(repo: Path, program: str) -> None:
    config(repo, "[core]", f"\tfsmonitor = {program}")


def hooks(repo: Path, program: str) -> None:
    hook(repo / ".git" / "hooks", program, *HOOKS)


def hooks_elsewhere(repo: Path, program: str) -> None:
    hook(repo / "hooks", program, *HOOKS)
    config(repo, "[core]", "\thooksPath = hooks")


def transactions(repo: Path, program: str) -> None:
    hook(repo / ".git" / "hooks", program, "reference-transaction")


def promised(repo: Path, program: str) -> None:
    """What is missing is fetched from a repository that a program serves."""
    config(repo, "[core]", "\trepositoryformatversion = 1", "[extensions]", "\tpartialClone = origin")
    config(repo, '[remote "origin"]', f"\turl = {repo}", "\tpromisor = true", f"\tuploadpack = {program}")


def lose(repo: Path, name: str) -> None:
    found = git(repo, "rev-parse", name).strip()
    (repo / ".git" / "objects" / found[:2] / found[2:]).unlink()


def commit_missing(repo: Path, program: str) -> None:
    lose(repo, "HEAD")
    promised(repo, program)


def tree_missing(repo: Path, program: str) -> None:
    lose(repo, "HEAD^{tree}")
    promised(repo, program)


def sparse(repo: Path, program: str) -> None:
    git(repo, "update-index", "-q", "--refresh")  # only what is known to be unchanged is taken away
    git(repo, "sparse-checkout", "set", "--cone", "--sparse-index", "kept")
    lose(repo, "HEAD:left")
    promised(repo, program)


def submodule(repo: Path, program: str) -> None:
    inner = commit(repo / "inner", {"c.py": "C = 1\n"})
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{git(inner, 'rev-parse', 'HEAD').strip()},inner")
    clean_by_info(inner, program)
    monitor(inner, program)
    os.utime(inner / "c.py", (0, 0))


def pointer(repo: Path, program: str) -> None:
    monitor(repo, program)
    clean_by_info(repo, program)
    shutil.move(repo / ".git", repo.parent / "elsewhere")
    (repo / ".git").write_text("gitdir: ../elsewhere\n")


def programs(repo: Path, program: str) -> None:
    attributes(repo, "* diff=y merge=y\n")
    config(repo, "[core]", *(f"\t{name} = {program}" for name in ("sshCommand", "askPass", "pager", "editor")))
    config(repo, "\tgitProxy = " + program, "\talternateRefsCommand = " + program)
    config(repo, "[gpg]", f"\tprogram = {program}", "[commit]", "\tgpgSign = true", "[log]", "\tshowSignature = true")
    config(repo, '[remote "origin"]', "\turl = ssh://nobody@localhost/nothing", f"\tuploadpack = {program}")
    config(repo, "[credential]", f"\thelper = {program}", "[alias]", f"\tfix = !{program}", f"\tapply = !{program}")
    config(repo, "[uploadpack]", f"\tpackObjectsHook = {program}", '[merge "y"]', f"\tdriver = {program}")
    config(repo, '[diff "y"]', f"\ttextconv = {program}", "[interactive]", f"\tdiffFilter = {program}")


def external_diff(repo: Path, program: str) -> None:
    (repo / "kept" / "a.py").write_text("A = 3\n")
    config(repo, "[diff]", f"\texternal = {program}")


HOSTILE = {
    "clean filter": Hostile(clean),
    "clean filter by info/attributes": Hostile(clean_by_info),
    "clean filter by include.path": Hostile(clean_by_include),
    "clean filter by includeIf": Hostile(clean_by_condition),
    "clean filter by config.worktree": Hostile(clean_by_work_tree),
    "smudge filter": Hostile(smudge, (("apply", f"../{PATCH}"),)),
    "process filter": Hostile(process),
    "core.fsmonitor": Hostile(monitor),
    "hooks": Hostile(hooks),
    "core.hooksPath": Hostile(hooks_elsewhere),
    "reference-transaction hook": Hostile(transactions, (("branch", "x"),)),
    "partial clone without its commit": Hostile(commit_missing, whole=False),
    "partial clone without its tree": Hostile(tree_missing, whole=False),
    "partial clone with a sparse index": Hostile(sparse, (("ls-files",),), whole=False),
    "submodule with a filter and a monitor": Hostile(submodule),
    "a .git file": Hostile(pointer),
    "programs of single commands": Hostile(
        programs, (("fetch",), ("log",), ("log", "-p"), ("commit", "--allow-empty", "-m", "x"), ("fix",))
    ),
    "diff.external": Hostile(external_diff, (("diff",),)),
}
_FIT_TOGETHER = (clean_by_work_tree, smudge, monitor, hooks, submodule, programs)


def _all_at_once(repo: Path, program: str) -> None:
    for make in _FIT_TOGETHER:
        make(repo, program)
    attributes(repo, "* filter=x diff=y merge=y\n")


ALL_AT_ONCE = Hostile(_all_at_once)


def seen(repo: Path, command: tuple[str, ...]) -> None:
    """Run plain git as a person does, at a terminal that shows little."""
    screen, terminal = os.openpty()
    env = {**os.environ, "PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}
    try:
        subprocess.run(["git", *command], cwd=repo, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal, env=env)
    finally:
        os.close(screen)
        os.close(terminal)
