"""This machine and its user: nothing of them is seen inside, and no path leads to them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from sandboxes import Provider, Sandbox, Snapshot, Workspace
from sandboxes.conformance.given import SECRET, Given, python, said, sh
from sandboxes.conformance.sample import git

_UP = "../" * 40


class Links(Given):
    """Paths, followed by whoever reads a state."""

    def test_links_lead_nowhere_outside(self, provider: Provider, base: Snapshot, tmp_path: Path) -> None:
        (tmp_path / "canary").write_text(SECRET)
        with provider.at(base) as box:
            assert sh(box, f"rm -r pkg; ln -s {tmp_path} pkg; ln -sf /etc/shadow src/app.py").exit_code == 0
            assert sh(box, f"ln -s /proc/1/root{tmp_path}/canary root").exit_code == 0
            for path in ("pkg/canary", "root"):
                with pytest.raises(OSError):  # noqa: PT011
                    box.read(path)
            linked = box.snapshot()
        assert SECRET.encode() not in provider.diff(base, linked)
        assert {"pkg", "root"} <= {change.path for change in provider.changes(base, linked)}
        with provider.scratch(linked, base, ["pkg/deep/one.txt"]) as box:
            assert box.read("pkg/deep/one.txt") == b"1\n"
        assert [path.name for path in tmp_path.iterdir()] == ["canary"]

    def test_a_link_that_climbs_above_the_root_stays_below_it(
        self, provider: Provider, base: Snapshot, tmp_path: Path
    ) -> None:
        (tmp_path / "canary").write_text(SECRET)
        with provider.at(base) as box:
            assert sh(box, f"ln -s {_UP}{tmp_path} up; ln -s {_UP}etc/passwd users; mkdir -p 'lôw/er'").exit_code == 0
            box.write("lôw/er/" + "n" * 200, b"beside")
            assert box.read("users") == box.read("/etc/passwd")
            with pytest.raises(FileNotFoundError):
                box.read("up/canary")
            linked = box.snapshot()
        assert SECRET.encode() not in provider.diff(base, linked)
        with provider.scratch(linked, base) as box:
            assert box.read("lôw/er/" + "n" * 200) == b"beside"
            with pytest.raises(FileNotFoundError):
                box.read("up/canary")


class Hidden(Links):
    """The host, from inside, and files that a fork leaves for whoever reads it."""

    def test_the_users_environment_and_home_are_out_of_sight(
        self, provider: Provider, base: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("RAMIFY_CANARY", "SSH_AUTH_SOCK", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "DOCKER_CONFIG"):
            monkeypatch.setenv(name, SECRET)
        (tmp_path / "canary").write_text(SECRET)
        with provider.at(base) as box:
            assert said(box, f"env | grep -c {SECRET} || true") == "0"
            assert said(box, f"cat /proc/*/environ 2>/dev/null | grep -c {SECRET} || true") == "0"
            assert said(box, f"cat {tmp_path}/canary 2>/dev/null || echo unseen") == "unseen"
            for path in (".ssh", ".aws", ".gnupg", ".netrc", ".docker/config.json", ".git-credentials", ".pypirc",
                         ".kube", ".config/gh", ".config/gcloud"):  # fmt: skip
                assert sh(box, f"test -e ~/{path}").exit_code == 1, path
            for path in ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd", "/run/user", "/run/podman",
                         "/run/dbus", "/run/systemd", "/sys/kernel", "/sys/fs/cgroup"):  # fmt: skip
                assert sh(box, f"test -e {path}").exit_code == 1, path
            assert said(box, "find / -xdev -type s 2>/dev/null | wc -l") == "0"

    def test_no_path_leads_out(self, rogue: Sandbox, tmp_path: Path) -> None:
        (tmp_path / "canary").write_text(SECRET)
        out = f"{tmp_path}/canary"
        ways = (out, f"{_UP}{out}", f"/proc/1/root{out}", f"/proc/self/root{out}", f"/proc/1/cwd/{_UP}{out}",
                f"/dev/fd/../../..{out}", f"/proc/{os.getpid()}/environ", f"/proc/{os.getpid()}/root{out}")  # fmt: skip
        for path in ways:
            with pytest.raises(OSError):  # noqa: PT011 - missing, or no permission
                rogue.read(path)
            assert sh(rogue, f"cat {path}").exit_code != 0
        assert rogue.read(f"{_UP}etc/passwd") == rogue.read("/etc/passwd")
        rogue.write(f"{_UP}{tmp_path}/planted", b"inside")
        rogue.remove(f"{_UP}{out}")
        assert [path.name for path in tmp_path.iterdir()] == ["canary"]

    def test_what_is_no_file_is_left_alone_by_whoever_reads_the_state(self, provider: Provider, base: Snapshot) -> None:
        odd = """
            import os, socket
            os.mkfifo('pipe'); os.mkfifo('.gitignore.pipe'); os.remove('.gitignore'); os.mkfifo('.gitignore')
            socket.socket(socket.AF_UNIX).bind('door')
            os.truncate(os.open('sparse', os.O_CREAT | os.O_RDWR), 8 << 20)
            os.mkdir('noentry', 0); os.symlink('loop', 'loop'); os.remove('crlf.txt'); os.mkfifo('crlf.txt')
        """
        with provider.at(base) as box:
            assert python(box, odd).exit_code == 0
            for path in ("pipe", "door", "crlf.txt", "loop", ".gitignore"):
                with pytest.raises(OSError):  # noqa: PT011
                    box.read(path)
            left = box.snapshot()
        changed = {change.path for change in provider.changes(base, left)}
        assert {"pipe", "door", "sparse", "crlf.txt", "loop", ".gitignore"} <= changed
        patch = provider.diff(base, left)
        assert (b"b/sparse" in patch, b"b/pipe" in patch) == (True, False)
        with provider.scratch(left, base, ["crlf.txt", ".gitignore"]) as box:
            assert box.read("crlf.txt") == b"one\r\ntwo\r\n"

    def test_the_settings_of_a_repository_run_nothing_on_this_machine(
        self, provider: Provider, base: Snapshot, tmp_path: Path
    ) -> None:
        """The workspace's own git settings name programs, and whoever reads its states is not to run them."""
        mark = tmp_path / "ran"
        trap = f"""
            printf '#!/bin/sh\\ntouch {mark}\\n' > /tmp/trap; cp /tmp/trap trap; chmod +x trap /tmp/trap
            for setting in core.fsmonitor core.pager core.sshCommand diff.external core.editor core.askPass \\
                    filter.trap.clean filter.trap.smudge filter.trap.process diff.trap.textconv diff.trap.command; do
                git config $setting "touch {mark}"
            done
            git config core.hooksPath $PWD; git config core.attributesFile $PWD/.gitattributes
            echo '* filter=trap diff=trap' > .gitattributes; cp .gitattributes .git/info/attributes
            for hook in post-checkout post-index-change pre-commit; do cp trap .git/hooks/$hook; cp trap $hook; done
            mkdir -p sub/.git/info; cp .git/config .git/HEAD sub/.git; mkdir -p sub/.git/objects sub/.git/refs
            echo x > sub/file; echo x > sub/.gitignore; echo x > sub/.git/.gitignore; echo changed >> src/app.py
        """
        with provider.at(base) as box:
            assert sh(box, trap).exit_code == 0
            trapped = box.snapshot()
        assert b"+changed" in provider.diff(base, trapped)
        assert b"-changed" in provider.diff(trapped, base)
        assert provider.changes(base, trapped)
        with provider.scratch(trapped, base, ["src"]) as box:
            assert b"changed" not in box.read("src/app.py")
        assert not mark.exists()

    def test_a_checkout_is_read_without_running_what_its_settings_name(
        self, provider: Provider, workspace: Workspace, tmp_path: Path
    ) -> None:
        checkout, mark = tmp_path / "checkout", tmp_path / "ran"
        checkout.mkdir()
        git(checkout, "init", "-q")
        (checkout / "file").write_text("x\n")
        git(checkout, "add", ".")
        trap = tmp_path / "trap"
        trap.write_text(f"#!/bin/sh\ntouch {mark}\n")
        trap.chmod(0o755)
        for name in ("core.fsmonitor", "core.pager", "core.sshCommand", "filter.trap.clean", "filter.trap.process"):
            git(checkout, "config", name, str(trap))
        (checkout / ".gitattributes").write_text("* filter=trap\n")
        (checkout / ".git/hooks/post-index-change").write_bytes(trap.read_bytes())
        (checkout / ".git/hooks/post-index-change").chmod(0o755)
        provider.create(Workspace(path=checkout, image=workspace.image))
        assert not mark.exists()

    def test_a_mode_that_gives_rights_is_no_part_of_a_patch(self, provider: Provider, base: Snapshot) -> None:
        with provider.at(base) as box:
            assert sh(box, "cp tool.sh up.sh; chmod 6777 up.sh").exit_code == 0
            assert stat.S_IMODE(int(said(box, "printf '%d' 0x$(stat -c %f up.sh)"))) == 0o6777
            left = box.snapshot()
        assert b"new file mode 100755" in provider.diff(base, left)
