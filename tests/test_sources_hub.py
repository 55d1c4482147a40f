"""Sets of the Hugging Face hub: by its own client, from a server on this machine and then from the cache alone."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests import rows

COMMIT = "0123456789" * 4
VERIFIED, GYM = json.dumps(rows.VERIFIED).encode(), json.dumps(rows.GYM).encode()
SETS = {
    "example/set": {
        "data/test-00000-of-00001.jsonl": VERIFIED,
        "data/train-00000-of-00001.jsonl": GYM,
        "README.md": b"# A set\n",
    },
    "example/untested": {"data/dev-00000-of-00001.jsonl": VERIFIED, "data/train-00000-of-00001.jsonl": GYM},
}
ASK = """
import json, sys
from pathlib import Path
from agent.errors import UsageError
from benchmarks.data.sources import open_source
for name in sys.argv[1:]:
    try:
        print(json.dumps([i.id for i in open_source(name, Path("clones")).instances()]))
    except UsageError as error:
        print(json.dumps(str(error)))
"""


class _Hub(BaseHTTPRequestHandler):
    """What the client asks of a set: its commit, the files of that, and each file's tag and content."""

    def log_message(self, *arguments: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        body = self._answer(self.path.partition("?")[0].removeprefix("/api"))
        self.send_response(404 if body is None else 200)
        content = body or b""
        headers = {"Content-Length": len(content), "ETag": f'"{hashlib.sha1(content).hexdigest()}"'}
        headers |= {"X-Repo-Commit": COMMIT} if body is not None else {"X-Error-Code": "RepoNotFound"}
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def _answer(self, path: str) -> bytes | None:
        _, _, owner, name, about, _, *rest = path.split("/")
        files = SETS.get(f"{owner}/{name}")
        if files is None:
            return None
        if about == "revision":
            return json.dumps({"id": f"{owner}/{name}", "sha": COMMIT, "siblings": []}).encode()
        if about == "tree":
            entries = [{"type": "file", "oid": "0" * 40, "size": len(d), "path": path} for path, d in files.items()]
            return json.dumps(entries).encode()
        return files.get("/".join(rest)) if about == "resolve" else None


@pytest.fixture
def hub() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def asked(home: Path, endpoint: str, *names: str, offline: bool = False) -> list[object]:
    """What a process with its own cache finds by these names; the client reads its settings when it is imported."""
    given = {"HF_HOME": str(home), "HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": str(int(offline))}
    proxies = {name: "" for name in os.environ if name.lower().endswith("_proxy")}
    done = subprocess.run(
        [sys.executable, "-c", ASK, *names],
        env={**os.environ, **proxies, **given},
        capture_output=True,
        check=True,
        text=True,
        timeout=500,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_split_of_a_set_is_downloaded_and_then_read_without_the_hub(hub: str, tmp_path: Path) -> None:
    first, train, no_split, no_set, dev, usual = asked(
        tmp_path, hub, "example/set", "example/set:train", "example/set:dev", "example/nothing",
        "example/untested:dev", "example/untested",
    )  # fmt: skip
    assert first == ["astropy__astropy-12907"]
    assert train == ["getmoto__moto-7365"]
    assert (dev, usual) == (first, train)  # of what is cached by now, dev is the only split
    assert "no split 'dev'" in str(no_split)
    assert "cannot download the set example/nothing: 404" in str(no_set)
    assert asked(tmp_path, hub, "example/set", "example/set:train", offline=True) == [first, train]


def test_a_set_that_is_not_in_the_cache_and_cannot_be_had_names_the_remedy(tmp_path: Path) -> None:
    (said,) = asked(tmp_path, "http://127.0.0.1:1", "example/set:test", offline=True)
    assert "cannot download the set example/set" in str(said)
    assert "give a file of it" in str(said)
