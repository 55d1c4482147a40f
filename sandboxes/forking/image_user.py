"""Finds the user and the environment of an image's commands, inside the image."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sandboxes import Sandbox, SandboxUnavailable

_ACTIVATION_TIMEOUT_S = 120.0
_OF_THE_SHELL = frozenset(["_", "SHLVL", "PWD", "OLDPWD", "BASHOPTS", "SHELLOPTS", "PS1"])

OWN = """
command -v find >/dev/null || exit 0
find . \\( ! -user "$1" -o ! -group "$2" \\) -exec sh -c 'chown -h "$0" "$@" && echo changed' "$1:$2" {} +
"""
"""A script that gives the workspace to a user and a group (its arguments, as numbers), and prints if anything changed.
Files with the right owner are not touched, because an overlay copies each file whose owner is set."""


@dataclass(frozen=True, slots=True)
class Account:
    """A user of an image."""

    user: int = 0
    group: int = 0
    home: str = ""
    """Empty if unknown."""

    @property
    def numbers(self) -> str:
        """`user:group`."""
        return f"{self.user}:{self.group}"

    def at_home(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return the environment with root's default paths moved to this user's home."""
        ours = {"HOME": self.home, "BASH_ENV": f"{self.home}/.bashrc"}
        roots = {"HOME": "/root", "BASH_ENV": "/root/.bashrc"}
        moved = {name for name in roots if self.user and self.home and env.get(name) == roots[name]}
        return {**env, **{name: ours[name] for name in moved}}


ROOT = Account()


def account(read: Callable[[str], bytes], stated: str) -> Account:
    """Resolve an image's user: a name or number with an optional group. `read` returns the image's files.

    Raises:
        SandboxUnavailable: the image has no such user.
    """
    user, _, group = stated.partition(":")
    home = ""
    for line in _lines(read, "/etc/passwd"):
        if len(line) > 5 and user in (line[0], line[2]):
            user, group, home = line[2], group or line[3], line[5]
            break
    for line in _lines(read, "/etc/group"):
        if len(line) > 2 and group == line[0]:
            group = line[2]
    group = group or "0"
    if not (user.isdigit() and group.isdigit()):
        raise SandboxUnavailable(f"the image's user {stated} is not in its /etc/passwd; name another image")
    return Account(int(user), int(group), home)


def _lines(read: Callable[[str], bytes], path: str) -> list[list[str]]:
    try:
        text = read(path).decode(errors="replace")
    except OSError:
        return []
    return [line.split(":") for line in text.splitlines()]


def activated(box: Sandbox, env: Mapping[str, str]) -> dict[str, str]:
    """Apply the image's `BASH_ENV`, for example an activated conda environment, to `env`.

    This way every command gets it, not only those that bash runs. `env` is unchanged without bash or if the file fails.
    """
    if "BASH_ENV" not in env:
        return dict(env)
    done = box.exec(["bash", "-c", "exec env -0"], timeout_s=_ACTIVATION_TIMEOUT_S, env=env, cwd="/")
    if done.exit_code or done.stdout_bytes > len(done.stdout):
        return dict(env)
    entries = [entry.decode("utf-8", "surrogateescape").partition("=") for entry in done.stdout.split(b"\0") if entry]
    variables = {name: value for name, equals, value in entries if equals and name not in _OF_THE_SHELL}
    return {**env, **{name: value for name, value in variables.items() if not name.startswith("BASH_FUNC_")}}
