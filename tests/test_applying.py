"""A patch reaches the checkout whole or not at all, and only where what it touches is as it was when the run began."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.cli import checkout
from agent.errors import RamifyError
from sandboxes.git.diff import Difference, Side, patch
from tests.projects import commit, git

RUN = Path("some run")
LINES = "".join(f"line {number}\n" for number in range(30))


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    made = commit(tmp_path / "repo", {"a.py": LINES, "run.sh": "echo\n", "gone.py": "old\n", "pkg/deep/x.py": "x\n"})
    (made / "link").symlink_to("a.py")
    git(made, "add", "-A")
    git(made, "commit", "-qm", "a link")
    return made


def file(text: str, mode: int = 0o644) -> Side:
    return Side("f", mode, text.encode())


CHANGED = LINES.replace("line 3\n", "line three\n")
PATCH = patch(
    [
        Difference("a.py", file(LINES), file(CHANGED)),
        Difference("run.sh", file("echo\n"), file("echo\n", 0o755)),
        Difference("gone.py", file("old\n"), None),
        Difference("pkg/deep/x.py", file("x\n"), None),
        Difference("new/file.py", None, file("new\n", 0o755)),
        Difference("link", Side("l", 0o777, b"a.py"), Side("l", 0o777, b"run.sh")),
    ]
)


def contents(repo: Path) -> dict[str, tuple[int, bytes]]:
    found = {}
    for path in sorted(repo.rglob("*")):
        if ".git" not in path.parts:
            data = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
            found[str(path.relative_to(repo))] = (path.lstat().st_mode, data)
    return found


def test_everything_that_a_patch_can_do_is_done(repo: Path) -> None:
    (repo / "a.py").chmod(0o664)
    checkout.apply(repo, PATCH, RUN)
    assert contents(repo) == {
        "a.py": (0o100664, CHANGED.encode()),
        "link": (0o120777, b"run.sh"),
        "new": (0o40755, b""),
        "new/file.py": (0o100755, b"new\n"),
        "run.sh": (0o100755, b"echo\n"),
    }


def test_changes_elsewhere_do_not_matter(repo: Path) -> None:
    (repo / "other.py").write_text("mine\n")
    git(repo, "rm", "-q", "--cached", "a.py")
    checkout.apply(repo, PATCH, RUN)
    assert (repo / "a.py").read_text() == CHANGED


def edit(repo: Path) -> str:
    (repo / "a.py").write_text(LINES.replace("line 25\n", "mine\n"))  # far from what the patch changes
    return "a.py"


def make_executable(repo: Path) -> str:
    (repo / "a.py").chmod(0o755)
    return "a.py"


def make_executable_too(repo: Path) -> str:
    (repo / "run.sh").chmod(0o755)
    return "run.sh"


def delete(repo: Path) -> str:
    (repo / "a.py").unlink()
    return "a.py"


def delete_what_the_patch_deletes(repo: Path) -> str:
    (repo / "gone.py").unlink()
    return "gone.py"


def put_a_file_in_the_way(repo: Path) -> str:
    (repo / "new").mkdir()
    (repo / "new" / "file.py").write_text("new\n")
    return "new/file.py"


def put_a_dangling_link_in_the_way(repo: Path) -> str:
    (repo / "new").mkdir()
    (repo / "new" / "file.py").symlink_to("nowhere")
    return "new/file.py"


def put_a_pipe_in_the_way(repo: Path) -> str:
    (repo / "a.py").unlink()
    os.mkfifo(repo / "a.py")
    return "a.py"


def make_it_a_link_that_leads_out(repo: Path) -> str:
    outside = repo.parent / "outside"
    (repo / "a.py").replace(outside)
    (repo / "a.py").symlink_to(outside)
    return "a.py"


def make_its_folder_a_link_that_leads_out(repo: Path) -> str:
    (repo / "pkg").rename(repo.parent / "outside")
    (repo / "pkg").symlink_to(repo.parent / "outside")
    return "pkg/deep/x.py"


def make_it_a_directory(repo: Path) -> str:
    (repo / "a.py").unlink()
    (repo / "a.py").mkdir()
    return "a.py"


def turn_the_link(repo: Path) -> str:
    (repo / "link").unlink()
    (repo / "link").symlink_to("gone.py")
    return "link"


@pytest.mark.parametrize(
    "change",
    [
        edit,
        make_executable,
        make_executable_too,
        delete,
        delete_what_the_patch_deletes,
        put_a_file_in_the_way,
        put_a_dangling_link_in_the_way,
        put_a_pipe_in_the_way,
        make_it_a_link_that_leads_out,
        make_its_folder_a_link_that_leads_out,
        make_it_a_directory,
        turn_the_link,
    ],
    ids=lambda change: change.__name__,
)
def test_what_changed_since_the_run_began_is_named_and_nothing_is_written(
    repo: Path, change: Callable[[Path], str]
) -> None:
    path = change(repo)
    before, around = contents(repo), contents(repo.parent)
    with pytest.raises(RamifyError) as refused:
        checkout.apply(repo, PATCH, RUN)
    assert f"nothing was applied to {repo}: {path} changed since the run began" in str(refused.value)
    assert f"ramify show 'some run' --patch | git -C {repo} apply --3way" in str(refused.value)
    assert (contents(repo), contents(repo.parent)) == (before, around)


def test_in_another_directory_the_missing_file_is_named(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(
        RamifyError, match=r"the file a\.py, which the patch changes, is not there; if another checkout"
    ):
        checkout.apply(tmp_path / "elsewhere", PATCH, RUN)


def test_the_remedy_that_is_named_merges_the_patch(repo: Path) -> None:
    edit(repo)
    git(repo, "commit", "-qam", "mine")
    subprocess.run(["git", "-C", repo, "apply", "--3way"], input=PATCH, check=True, capture_output=True)
    assert (repo / "a.py").read_text() == CHANGED.replace("line 25\n", "mine\n")


def test_many_files_that_changed_are_named_in_part(repo: Path) -> None:
    many = patch([Difference(f"f{number}", None, file("x\n")) for number in range(9)])
    for number in range(9):
        (repo / f"f{number}").write_text("y\n")
    with pytest.raises(RamifyError, match=r"f0, f1, f2, f3, f4 and 4 more changed"):
        checkout.apply(repo, many, RUN)


@pytest.mark.parametrize("obstacle", ["a directory that is not empty", "a file in the place of a folder"])
def test_what_cannot_be_written_undoes_what_was_written_before(repo: Path, obstacle: str) -> None:
    """The patch turns `pkg` into a file, and the folder holds more than git knows of; or the other way round."""
    if obstacle.startswith("a directory"):
        (repo / "pkg" / "ignored.log").write_text("mine\n")
        last = [Difference("pkg/deep/x.py", file("x\n"), None), Difference("pkg", None, file("pkg\n"))]
    else:
        (repo / "zoo").write_text("mine\n")
        last = [Difference("zoo/new.py", None, file("new\n"))]
    made = patch([Difference("a.py", file(LINES), file(CHANGED)), *last])
    before = contents(repo)
    with pytest.raises(RamifyError, match=r"nothing was applied to .*(pkg|zoo)"):
        checkout.apply(repo, made, RUN)
    assert contents(repo) == before


def test_a_folder_can_become_a_file_and_a_file_a_folder(repo: Path) -> None:
    made = patch(
        [
            Difference("pkg/deep/x.py", file("x\n"), None),
            Difference("pkg", None, file("pkg\n")),
            Difference("gone.py", file("old\n"), None),
            Difference("gone.py/now.py", None, file("now\n")),
        ]
    )
    checkout.apply(repo, made, RUN)
    assert (repo / "pkg").read_text() == "pkg\n"
    assert (repo / "gone.py" / "now.py").read_text() == "now\n"


@pytest.mark.parametrize("path", [".git/hooks/post-checkout", "sub/.GIT/config", "../outside", "git~1/config"])
def test_nothing_is_written_to_git_s_own_files_or_outside(repo: Path, path: str) -> None:
    made = patch([Difference("placeholder", None, file("x\n"))]).replace(b"placeholder", path.encode())
    before = {str(each) for each in repo.parent.rglob("*")}
    with pytest.raises(RamifyError, match="nothing was applied"):
        checkout.apply(repo, made, RUN)
    assert {str(each) for each in repo.parent.rglob("*")} == before


def test_attributes_and_settings_of_the_repository_change_nothing(repo: Path) -> None:
    (repo / ".gitattributes").write_text("* text eol=crlf ident working-tree-encoding=UTF-16\n")
    git(repo, "config", "core.autocrlf", "true")
    git(repo, "config", "apply.whitespace", "fix")
    made = patch([Difference("a.py", file(LINES), file("$Id$  \nx\r\n"))])
    checkout.apply(repo, made, RUN)
    assert (repo / "a.py").read_bytes() == b"$Id$  \nx\r\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can write what belongs to others")
def test_what_root_writes_belongs_to_the_owner_of_the_checkout(repo: Path) -> None:
    for place in (repo, *repo.rglob("*")):
        os.lchown(place, 4321, 4321)
    checkout.apply(repo, PATCH, RUN)
    assert {place.lstat().st_uid for place in (repo, *repo.rglob("*"))} == {4321}
