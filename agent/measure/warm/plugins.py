"""Write Ramify's pytest plugins into a fork, so that every Python that the test command starts loads them.

The command is the user's: it may set PYTHONPATH itself, or hide pytest behind make. The plugins therefore go into a
folder on PYTHONPATH (even if the command itself assigns PYTHONPATH), and into the site-packages of every Python found.
"""

from __future__ import annotations

import importlib.util
import json
import math
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from agent.measure.inside import program_source
from sandboxes import Sandbox

SITE_PACKAGES = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
FIND_SITE_PACKAGES = f"""
shebang=$(head -c 200 "$(command -v pytest)" | sed -n '1s/^#! *//p')
asked=" "
for python in python python3 .venv/bin/python venv/bin/python "$shebang" "$@"
do path=$(command -v "$python") || continue
   same="$(cd "${{path%/*}}" && pwd):$(readlink -f "$path" || echo "$path") "
   case "$asked" in *" $same"*) ;; *) asked="$asked$same"; "$python" -c "{SITE_PACKAGES}" ;; esac
done; true
"""
"""Prints the site-packages of each Python once: two names in one folder for one program are the same Python."""
REPORTER = ["alarm", "channel", "account", "wanted", "cutting", "failures", "installed", "rewritten", "reporter"]
"""The programs of the reporter, each after those it imports."""
OMITTED = ["*/site-packages/*", "*/dist-packages/*", "*/.venv/*", "*/venv/*"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How long tests may take, and how many failures end the run."""

    cpu_s: float
    """CPU seconds for one test."""
    wall_s: float
    """Wall-clock seconds for one test."""
    run_s: float
    """Wall-clock seconds for the whole run. Tests that have not run by then are reported as late, if the runner can
    tell."""
    timeouts: int
    """Number of tests that may time out before the rest is skipped."""
    must_pass: frozenset[str] = frozenset()
    """Tests that count as regressions if they do not pass."""
    regressions: int = 1_000_000
    """Number of regressions after which the rest is left out."""
    late_s: float = math.inf
    """Wall-clock seconds after which a test is ended as late, so that others have their turn."""
    jobs: int = 1
    """Number of processes that run tests at the same time, if the runner supports it."""

    grace_s: float = 30.0
    """Extra seconds after `run_s` to end the current test and close the report; then the run is killed."""

    @property
    def kill_s(self) -> float:
        """Seconds after which the run is killed."""
        return self.run_s + self.grace_s

    def to_json(self) -> dict[str, object]:
        """The limits as a program in the sandbox receives them."""
        known = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**known, "must_pass": sorted(self.must_pass)}


@dataclass(frozen=True, slots=True)
class RunNames:
    """The unguessable names of one run in one fork: of its folder, its report and its plugins."""

    folder: str
    site_packages: tuple[str, ...]
    report: str
    nonce: str
    plugins: tuple[str, ...]
    """Module names in loading order; the reporter is last, and deletes the files of all of them."""

    @property
    def archive(self) -> str:
        """The path of the archive that the run writes, if it is asked to write one."""
        return f"{self.folder}/archive"

    def copies(self, plugin: str) -> list[str]:
        """The folders that a plugin is written to."""
        return [f"{folder}/{plugin}" for folder in (self.folder, *self.site_packages)]


def find_site_packages(box: Sandbox, command: str) -> tuple[str, ...]:
    """The site-packages of the Pythons that the test command probably starts."""
    named = re.findall(r"\S*/python[\d.]*(?=\s)", command)
    found = box.exec(["/bin/sh", "-c", FIND_SITE_PACKAGES, "sh", *named], timeout_s=60)
    return tuple(dict.fromkeys(line for line in found.stdout.decode().split("\n") if line.startswith("/")))


def run_names(site_packages: Sequence[str], *, trace: bool = False) -> RunNames:
    """Choose the names of a run. Its plugins are the reporter and, with `trace`, the tracer before it."""
    folder = f"/tmp/{secrets.token_hex(8)}"  # noqa: S108  # inside the sandbox, where nobody else is
    plugins = tuple(f"m{secrets.token_hex(8)}" for _ in range(2 if trace else 1))
    return RunNames(folder, tuple(site_packages), f"{folder}/{secrets.token_hex(8)}", secrets.token_hex(16), plugins)


def install_reporter(
    box: Sandbox,
    names: RunNames,
    wanted: Sequence[str],
    limits: Limits,
    *,
    by_path: bool = False,
    part: tuple[int, int] = (0, 1),
    archives: Sequence[str] = (),
    archive: bool = False,
) -> None:
    """Write the reporting plugin; it runs only the `wanted` tests, or all if there are none. `by_path`: give pytest
    their files instead of the command's selection. `part`: the index of this part, from 0, and the number of parts.
    `archives`: paths of rewritten test files. `archive`: write a further archive of the test files that are in none of
    those."""
    request = run_request(names, wanted, limits, by_path=by_path) | {"part": part, "archives": archives}
    request |= {"archive": names.archive} if archive else {}
    _write_copies(box, names.copies(names.plugins[-1]), REPORTER, **request)


def install_prober(
    box: Sandbox,
    names: RunNames,
    wanted: Sequence[str],
    limits: Limits,
    probes: Sequence[Mapping[str, object]],
    *,
    by_path: bool = False,
) -> None:
    """Like `install_reporter`, but also record values at the probes (`agent.measure.inside.watching`)."""
    request = run_request(names, wanted, limits, by_path=by_path) | {"root": box.workdir, "probes": list(probes)}
    _write_copies(box, names.copies(names.plugins[-1]), [*REPORTER, "values", "notes", "watching", "prober"], **request)


def run_request(names: RunNames, wanted: Sequence[str], limits: Limits, *, by_path: bool) -> dict[str, object]:
    """Return the request that tells a program in the sandbox what to run, as plain data."""
    return {
        "wanted": list(wanted),
        "by_path": by_path,
        **limits.to_json(),
        "report": names.report,
        "nonce": names.nonce,
        "folder": names.folder,
        "plugins": names.plugins,
        "copies": [copy for plugin in names.plugins for copy in names.copies(plugin)],
    }


def install_tracer(box: Sandbox, names: RunNames) -> str:
    """Write the plugin that records executed lines, and a copy of Ramify's coverage package in case the sandbox has
    none. Return the path of the result, JSON: test id -> path relative to the workspace -> line numbers."""
    library, lines = f"{names.folder}/library", f"{names.folder}/lines"
    copies = names.copies(names.plugins[0])
    _write_copies(box, copies, ["tracer"], root=box.workdir, omit=OMITTED, library=library, lines=lines)
    found = importlib.util.find_spec("coverage")
    assert found is not None
    assert found.origin is not None
    for file in Path(found.origin).parent.iterdir():
        if file.suffix in (".py", ".so"):
            box.write(f"{library}/coverage/{file.name}", file.read_bytes())
    return lines


def shell(command: str, names: RunNames) -> list[str]:
    """The argv that runs the user's command with the plugins importable."""
    options = " ".join(f"-p {plugin}" for plugin in names.plugins)
    prologue = (
        f"export PYTHONPATH={names.folder}${{PYTHONPATH:+:$PYTHONPATH}}"
        f' PYTEST_ADDOPTS="{options}${{PYTEST_ADDOPTS:+ $PYTEST_ADDOPTS}}"'
        f" PYTEST_PLUGINS={','.join(names.plugins)}${{PYTEST_PLUGINS:+,$PYTEST_PLUGINS}}"
    )
    own = re.sub(r"(?<!\w)PYTHONPATH=", f"PYTHONPATH={names.folder}:", command)
    return ["/bin/sh", "-c", f"{prologue}\n{own}"]


def _write_copies(box: Sandbox, folders: Sequence[str], programs: Sequence[str], **request: object) -> None:
    """Write a package of these programs; the last one is started with `request`."""
    start = f"import json\n\nfrom .{programs[-1]} import begin\n\n"
    start += f"pytest_load_initial_conftests = begin(json.loads({json.dumps(request)!r}))\n"
    files = {"__init__": start.encode()} | {name: program_source(f"{name}.py") for name in programs}
    for folder in folders:
        try:
            for name, source in files.items():
                box.write(f"{folder}/{name}.py", source)
        except OSError:  # its site-packages are read-only: PYTHONPATH has to suffice
            continue
