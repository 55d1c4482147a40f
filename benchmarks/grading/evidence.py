"""Evidence: what grading a patch observed, kept so that anybody can derive the verdict again without a sandbox.

Invariant: a verdict follows from its bundle by `decide`. A bundle lists the SHA-256 of its files; each line of the
chain has the SHA-256 of a bundle and of the line before. So the digest of the last line, the head, covers everything:
anybody who keeps the head can detect any change.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from agent.files import to_json, write_atomically
from agent.measure import SuiteReport
from agent.parsing import adapter
from agent.version import version
from benchmarks.data.instances import Hidden, Instance
from benchmarks.data.jsonl_ledger import Ledger, read_lines
from benchmarks.data.suites import instance_digest
from benchmarks.grading.verdicts import RULES, Finding, Verdict, patch_digest

CHAIN = "chain.jsonl"
_FACTS, _PATCH, _REPORT, _LOG = "bundle.json", "patch.diff", "report.json", "log.txt"
_READER = "reader.sh"
"""The set's own program that made `log.txt` from the logs that the tests left."""
_FILE = re.compile(r"patch\.diff|report\.json|log\.txt|reader\.sh|left-\d+\.txt")


class Forged(Exception):
    """A bundle is not as it was written; the message says what differs."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """The evidence of one grading."""

    instance_id: str
    patch: bytes
    hidden: Hidden
    """The task's hidden part, reduced to the names of the tests and how their log is read."""
    finding: Finding
    verdict: Verdict
    facts: Mapping[str, Any]
    """The circumstances: commit, image, state, command, versions."""


class Archive:
    """A folder of bundles that is being filled, by one process at a time. Thread-safe.

    Raises:
        UsageError: another process fills the folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._chain = Ledger(folder / CHAIN)
        self._head = chain_head(folder)

    @property
    def head(self) -> str:
        """The SHA-256 that covers everything in the folder; empty for an empty folder."""
        return self._head

    def close(self) -> None:
        """Release the folder for other processes."""
        self._chain.close()

    def keep(self, instance: Instance, patch: bytes, finding: Finding, verdict: Verdict) -> None:
        """Write a bundle, unless the verdict is `error`, which shows nothing about the patch."""
        if verdict.status == "error":
            return
        with self._lock:
            name = f"{instance.id}/{self._next(instance.id)}"
            files = _files(instance.hidden, patch, finding)
            for file, data in files.items():
                _write(self._folder / name / file, data)
            facts = _facts(instance, finding, verdict) | {"files": {file: digest(data) for file, data in files.items()}}
            data = json.dumps(facts, indent=1, sort_keys=True).encode() + b"\n"
            _write(self._folder / name / _FACTS, data)
            line = {"bundle": name, "sha256": digest(data), "previous": self._head}
            self._chain.append(line)
            self._head = line_digest(line)

    def _next(self, instance_id: str) -> int:
        return max((int(path.name) for path in (self._folder / instance_id).glob("[0-9]*")), default=0) + 1


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, data)


def _files(hidden: Hidden, patch: bytes, finding: Finding) -> dict[str, bytes]:
    report = {} if finding.report is None else {_REPORT: to_json(finding.report) + b"\n"}
    log = {_LOG: finding.log} if finding.log else {}
    left = {f"left-{number}.txt": data for number, data in enumerate(finding.left.values())}
    reader = {_READER: hidden.reader.script.encode("utf-8", "surrogateescape")} if left and hidden.reader else {}
    return {_PATCH: patch, **report, **log, **left, **reader}


def _facts(instance: Instance, finding: Finding, verdict: Verdict) -> dict[str, Any]:
    task, hidden = instance.task, instance.hidden
    return {
        "instance_id": instance.id,
        "instance_sha256": instance_digest(instance),
        "base_commit": task.base,
        "image": task.workspace.image or "",
        "state": finding.state,
        "command": hidden.test_command or task.test_command,
        "fail_to_pass": hidden.fail_to_pass,
        "pass_to_pass": hidden.pass_to_pass,
        "eval_type": hidden.eval_type,
        "outcomes": dict(hidden.outcomes),
        "log_parser": hidden.log_parser,
        "test_patch_sha256": patch_digest(hidden.test_patch),
        "refused": finding.refused,
        "left": {f"left-{number}.txt": path for number, path in enumerate(finding.left)},
        "verdict": asdict(verdict),
        "rules": RULES,
        "versions": _versions(),
    }


@cache
def _versions() -> dict[str, str]:
    return {"ramify": version(), "python": platform.python_version(), "machine": platform.platform()}


def chain_head(folder: Path) -> str:
    """The digest of the last line of the chain in a folder; empty if there is none."""
    head = ""
    for line in read_lines(folder / CHAIN, torn=True):
        head = line_digest(line)
    return head


def line_digest(line: Mapping[str, Any]) -> str:
    """The digest of a line of the chain, which the next line has as `previous`."""
    return digest(json.dumps(line, sort_keys=True).encode())


def digest(data: bytes) -> str:
    """SHA-256, in hex."""
    return hashlib.sha256(data).hexdigest()


def read_bundle(folder: Path, sha256: str) -> Bundle:
    """Read the bundle in a folder. Its facts must have this digest.

    Raises:
        Forged: a part of it is missing, was changed, or cannot be read.
    """
    facts: Any = None
    try:
        data = (folder / _FACTS).read_bytes()
        if digest(data) != sha256:
            raise Forged(f"{_FACTS} is not what the chain says was written")
        facts = json.loads(data)
        if unknown := sorted(name for name in facts["files"] if not _FILE.fullmatch(name)):
            raise Forged(f"no grading leaves a file {unknown[0]!r}")
        files = {name: _intact(folder / name, sha256) for name, sha256 in facts["files"].items()}
        return _bundle(facts, files)
    except OSError as error:
        raise Forged(f"{error.filename} cannot be read: {error.strerror}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Forged(f"{graded_elsewhere(facts)}it cannot be read: {error}") from error


def graded_elsewhere(facts: Any) -> str:
    """The beginning of an error message that names the other version of Ramify that graded a bundle; empty if it was
    this version, or if the facts do not name one."""
    match facts:
        case {"versions": {"ramify": str(theirs)}, "rules": int(rules)}:
            ours = version()
        case _:
            return ""
    if (theirs, rules) == (ours, RULES):
        return ""
    return (
        f"Ramify {theirs} graded it, by rules {rules}; this is Ramify {ours}, with rules {RULES}, for "
        "which it has to be graded again: "
    )


def _intact(path: Path, sha256: str) -> bytes:
    data = path.read_bytes()
    if digest(data) != sha256:
        raise Forged(f"{path.name} is not what was graded")
    return data


def _bundle(facts: Mapping[str, Any], files: Mapping[str, bytes]) -> Bundle:
    failing, kept = tuple(facts["fail_to_pass"]), tuple(facts["pass_to_pass"])
    outcomes, parser = facts.get("outcomes", {}), facts.get("log_parser", "")
    kind = facts.get("eval_type", "pass_and_fail")
    hidden = Hidden(failing, kept, b"", b"", eval_type=kind, log_parser=parser, outcomes=outcomes)
    report = _report(files[_REPORT]) if _REPORT in files else None
    finding = Finding(report, facts["refused"], state=facts["state"], log=files.get(_LOG, b""))
    verdict = Verdict.from_row(facts["verdict"])
    return Bundle(facts["instance_id"], files[_PATCH], hidden, finding, verdict, facts)


def _report(data: bytes) -> SuiteReport:
    report: SuiteReport = adapter(SuiteReport).validate_python(json.loads(data))
    return report
