"""What is read of a repository of others, by settings of our own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sandboxes import GitFailed, SandboxError
from sandboxes.git.command import Git
from sandboxes.git.foreign import locate, opened
from tests.projects import commit, git


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return commit(tmp_path / "repo", {"calc.py": "x = 1\n", "sub/deep.py": "y = 1\n"})


def dirty(repo: Path) -> bool:
    found = locate(repo)
    assert found
    with opened(found) as view:
        return view.dirty()


def test_a_change_of_the_same_size_in_the_second_of_the_commit_is_seen(repo: Path) -> None:
    assert not dirty(repo)
    facts = (repo / "calc.py").stat()
    (repo / "calc.py").write_text("x = 2\n")
    os.utime(repo / "calc.py", ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert dirty(repo)


def test_a_virtual_environment_is_no_change_and_any_other_folder_is(repo: Path) -> None:
    (repo / ".venv" / "bin").mkdir(parents=True)
    (repo / ".venv" / "bin" / "activate").touch()
    assert dirty(repo)
    (repo / ".venv" / "pyvenv.cfg").touch()
    assert not dirty(repo)
    (repo / "env").symlink_to(".venv")
    assert not dirty(repo)
    (repo / "new.py").touch()
    assert dirty(repo)


def test_what_the_user_ignores_everywhere_is_no_change(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (repo / ".idea").touch()
    (repo / "a.swp").touch()
    assert dirty(repo)
    (tmp_path / "config" / "git").mkdir(parents=True)
    (tmp_path / "config" / "git" / "ignore").write_text(".idea\n*.swp\n")
    assert not dirty(repo)
    (tmp_path / ".gitconfig").write_text("[core]\n\texcludesFile = ~/mine\n")
    (tmp_path / "mine").write_text(".idea\n")
    assert dirty(repo)
    (repo / "a.swp").unlink()
    assert not dirty(repo)


def test_a_file_that_a_filter_keeps_in_another_form_is_unchanged_until_its_size_or_time_changes(repo: Path) -> None:
    git(repo, "config", "filter.x.clean", "tr a-z A-Z")
    git(repo, "config", "filter.x.smudge", "tr A-Z a-z")
    (repo / ".gitattributes").write_text("*.txt filter=x\n")
    (repo / "large.txt").write_text("content\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "filtered")
    assert git(repo, "show", "HEAD:large.txt") == "CONTENT\n"
    assert not dirty(repo)
    os.utime(repo / ".git" / "index", ns=(0, (repo / "large.txt").stat().st_mtime_ns))  # as in one second
    assert not dirty(repo)
    (repo / "large.txt").write_text("more content\n")
    assert dirty(repo)


def test_line_ends_that_git_converts_are_no_change(repo: Path) -> None:
    (repo / ".gitattributes").write_text("*.txt text eol=crlf\n")
    (repo / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "converted")
    os.utime(repo / "dos.txt", (0, 0))
    assert git(repo, "cat-file", "-s", "HEAD:dos.txt").strip() == "8"
    assert not dirty(repo)


def test_a_view_writes_nothing_into_the_repository(repo: Path) -> None:
    def content() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in (repo / ".git").rglob("*") if path.is_file()}

    before, found = content(), locate(repo)
    assert found
    with opened(found) as view:
        view.git.run("hash-object", "-w", "--stdin", stdin=b"new\n")
        view.git.run("add", "-A")
        view.git.run("update-index", "--force-remove", "calc.py")
    assert content() == before


def test_the_nearest_repository_is_found_and_names_in_settings_are_the_last(repo: Path) -> None:
    git(repo, "config", "--add", "remote.origin.url", "https://example.org/old")
    git(repo, "config", "--add", "remote.origin.url", "https://example.org/new")
    found = locate(repo / "sub")
    assert found
    assert (found.work_tree, found.git_dir, found.common_dir) == (repo, repo / ".git", repo / ".git")
    with opened(found) as view:
        assert view.settings["remote.origin.url"] == "https://example.org/new"
        assert view.commit() == view.commit("main") == git(repo, "rev-parse", "HEAD").strip()
        assert view.commit("nothing") == view.commit("--all") == ""


@pytest.mark.parametrize("name", ["config", "index", "info/exclude", "shallow", "commondir"])
def test_a_pipe_in_a_git_directory_is_not_waited_for(repo: Path, name: str) -> None:
    (repo / ".git" / name).unlink(missing_ok=True)
    os.mkfifo(repo / ".git" / name)
    found = locate(repo)
    assert found
    with opened(found) as view:
        assert view.commit()


def test_damaged_settings_are_named(repo: Path) -> None:
    (repo / ".git" / "config").write_text("[core\n")
    found = locate(repo)
    assert found
    with pytest.raises(SandboxError, match=r"\.git/config is damaged .*; repair it"), opened(found):
        pass


def test_a_machine_without_git_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(GitFailed, match="there is no git on this machine; install it"):
        Git(tmp_path / "own").run("version")
