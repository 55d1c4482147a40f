"""A patch that changes more than source code is not proposed before a person has read it."""

import json
import os
import shutil
import subprocess

import pytest

from agent.cli.ci.patch_check import BIG_BYTES, RULES, check
from agent.errors import UsageError
from tests import commands
from tests.projects import commit, git

DECIDING = {
    "ci": (".forgejo/workflows/x.yml", ".gitea/workflows/x.yml", "tools/action.yml", "Jenkinsfile.prod",
           "buildspec.yml", "cloudbuild.yaml", ".builds/debian.yml", ".tekton/run.yaml"),
    "git": (".lfsconfig", "lefthook.yml"),
    "lock": ("requirements.txt", ".npmrc", ".yarnrc.yml", ".pnpmfile.cjs", "bunfig.toml", "pip.conf",
             "gradle/wrapper/gradle-wrapper.properties"),
    "tools": (".devcontainer.json", "a.code-workspace", ".windsurfrules", ".clinerules", ".aider.conf.yml",
              ".codex/config.toml", ".gemini/settings.json", ".zed/tasks.json", ".roo/rules.md", "mise.toml"),
}  # fmt: skip


@pytest.fixture
def repo(tmp_path):
    return commit(tmp_path / "repo", {"calc.py": "x = 1\n", "run.sh": "echo\n", "src/inner.py": "y = 1\n"})


def change(repo, edit):
    """The patch of an edit, which is taken back."""
    edit(repo)
    git(repo, "add", "-A", "-f")
    patch = subprocess.run(["git", "diff", "--cached", "--binary"], cwd=repo, capture_output=True, check=True).stdout
    git(repo, "reset", "-q", "--hard")
    assert patch
    return patch


def writes(path, text="text\n"):
    def edit(repo):
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_text(text)

    return edit


def links(path, target):
    def edit(repo):
        (repo / path).symlink_to(target)

    return edit


def rules(repo, patch, **options):
    return [(each.rule, each.path) for each in check(repo, patch, **options)]


def submodule(repo):
    head = git(repo, "rev-parse", "HEAD").strip()
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{head},module")


def test_source_and_tests_may_be_changed_added_and_removed(repo):
    def edit(repo):
        (repo / "calc.py").write_text("x = 2\n")
        (repo / "test_calc.py").write_text("def test(): pass\n")
        (repo / "src" / "inner.py").unlink()
        (repo / "link").symlink_to("calc.py")
        (repo / "src" / "up").symlink_to("../run.sh")

    assert check(repo, change(repo, edit)) == ()


def test_an_empty_patch_is_fit(repo):
    assert check(repo, b"") == check(repo, b"\n") == ()


@pytest.mark.parametrize(
    ("edit", "rule", "path"),
    [
        (writes(".github/workflows/ci.yml"), "ci", ".github/workflows/ci.yml"),
        (writes("packages/a/.gitlab-ci.yml"), "ci", "packages/a/.gitlab-ci.yml"),
        (writes("Jenkinsfile"), "ci", "Jenkinsfile"),
        (writes(".gitattributes"), "git", ".gitattributes"),
        (writes(".husky/pre-commit"), "git", ".husky/pre-commit"),
        (writes("web/package-lock.json"), "lock", "web/package-lock.json"),
        (writes("uv.lock"), "lock", "uv.lock"),
        (writes("AGENTS.md"), "tools", "AGENTS.md"),
        (writes(".vscode/tasks.json"), "tools", ".vscode/tasks.json"),
        *((writes(path), rule, path) for rule, paths in DECIDING.items() for path in paths),
        (links("out", "/etc/passwd"), "symlink", "out"),
        (links("src/out", "../../elsewhere"), "symlink", "src/out"),
        (links("inner", ".git/config"), "symlink", "inner"),
        (links("inner", "src/.GIT/config"), "symlink", "inner"),
        (links("through", "src/up/../../elsewhere"), "symlink", "through"),
        (lambda repo: (repo / "run.sh").chmod(0o755), "mode", "run.sh"),
        (writes("big.bin", "0" * (BIG_BYTES + 1)), "big", "big.bin"),
        (writes("a\u202eb.py"), "name", "a\\u202eb.py"),
        (writes("calc.py", "x = 1\nif admin:\u202e # \u2066\n"), "hidden", "calc.py"),
        (writes("new.py", "na\u200bme = 1\n"), "hidden", "new.py"),
    ],
)
def test_a_rule_names_the_path_and_can_be_allowed(repo, edit, rule, path):
    patch = change(repo, edit)
    assert rules(repo, patch) == [(rule, path)]
    assert rules(repo, patch, allow=frozenset({rule})) == []
    assert rules(repo, patch, allow=frozenset(RULES) - {rule}) == [(rule, path)]


def test_a_link_that_passes_a_link_that_leads_out_leads_out(repo):
    (repo / "src" / "etc").symlink_to("/etc")
    (repo / "src" / "around").symlink_to("around")
    (repo / "src" / "here").symlink_to("..")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "links")
    for target in ("src/etc/passwd", "src/around"):
        assert rules(repo, change(repo, links("through", target))) == [("symlink", "through")]
    assert rules(repo, change(repo, links("through", "src/here"))) == []


def test_what_could_not_be_seen_before_is_no_fault_of_a_patch(tmp_path):
    repo = commit(tmp_path / "odd", {"old.py": "\ufeffna\u200bme = 1\n", "blob.bin": "\0\u200b"})

    def edit(repo):
        (repo / "old.py").write_text("\ufeffna\u200bme = 1\nprice = 2  # in \u20ac\n")
        (repo / "blob.bin").write_text("\0\u200b\u200b")

    assert rules(repo, change(repo, edit)) == []


def test_a_link_in_the_place_of_a_file_and_a_program_that_is_new_are_modes(repo):
    def edit(repo):
        (repo / "calc.py").unlink()
        (repo / "calc.py").symlink_to("run.sh")
        (repo / "new.sh").write_text("echo\n")
        (repo / "new.sh").chmod(0o755)

    assert rules(repo, change(repo, edit)) == [("mode", "calc.py"), ("mode", "new.sh")]


def test_a_submodule_is_named(repo):
    submodule(repo)
    patch = subprocess.run(["git", "diff", "--cached"], cwd=repo, capture_output=True, check=True).stdout
    git(repo, "reset", "-q", "--hard")
    assert rules(repo, patch) == [("submodule", "module")]


def test_case_does_not_hide_a_path(repo):
    assert rules(repo, change(repo, writes(".GitHub/workflows/x.yml")))[0] == ("ci", ".GitHub/workflows/x.yml")


@pytest.mark.parametrize(
    "patch",
    [
        *(
            b"diff --git a/%b b/%b\nnew file mode 100644\n--- /dev/null\n+++ b/%b\n@@ -0,0 +1 @@\n+x\n" % ((path,) * 3)
            for path in (b"../x", b".git/config")
        ),
        b"diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n@@ -1 +1 @@\n-x = 7\n+x = 2\n",
    ],
)
def test_what_git_does_not_take_cannot_be_allowed(repo, patch):
    assert [rule for rule, _ in rules(repo, patch, allow=frozenset(RULES))] == ["apply"]


CUT = b"diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n@@ -1,3 +1,3 @@\n-x = 1\n"


@pytest.mark.parametrize("junk", [b"junk", b"@@ -1 +1 @@\n-x = 1\n+x = 2\n", CUT, b"\0\xff"])
def test_what_is_no_patch_is_bad_input_and_no_finding(repo, junk):
    with pytest.raises(UsageError, match=r"is not a git patch \([^(]+\): make one with"):
        check(repo, junk)


def test_the_repository_is_only_read(repo, tmp_path):
    def state():
        return {p: p.stat().st_mtime_ns for p in repo.rglob("*")}

    patch = change(shutil.copytree(repo, tmp_path / "copy"), writes("new.py"))
    before = state()
    check(repo, patch)
    assert state() == before


def test_what_is_no_repository_or_no_commit_is_an_error_that_names_it(repo, tmp_path):
    with pytest.raises(UsageError, match="nowhere"):
        check(tmp_path / "nowhere", b"x")
    with pytest.raises(UsageError, match=r"no commit .v9."):
        check(repo, b"x", base="v9")


def ramify(repo, *argv, stdin=b""):
    return commands.ramify(argv, cwd=repo, env=os.environ, stdin=stdin.decode())


def test_the_command_exits_with_1_and_says_why(repo):
    patch = change(repo, writes(".github/x.yml"))
    done = ramify(repo, "check-patch", "-", stdin=patch)
    assert (done.returncode, done.stdout) == (1, "ci        .github/x.yml: it decides what the pipeline runs\n")
    done = ramify(repo, "check-patch", "-", "--json", "--allow", "ci", stdin=patch)
    assert (done.returncode, json.loads(done.stdout)) == (0, {"ok": True, "findings": []})
    done = ramify(repo, "check-patch", "-", "--allow", "cy", stdin=patch)
    assert done.returncode == 2
    assert "the rules are ci, git, lock" in done.stderr
    done = ramify(repo, "check-patch", "-", stdin=b"junk")
    assert (done.returncode, done.stdout) == (2, "")
    assert "not a git patch" in done.stderr
