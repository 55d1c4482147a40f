"""A real registry of images on this machine (Debian's docker-registry), and what stands before it in a bad hour."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

READY_S = 200
_CONFIG = """version: 0.1
log: {{level: warn}}
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""
_PASSED_ON = ("Accept", "Range", "Authorization")
_PASSED_BACK = ("Content-Type", "Docker-Content-Digest", "Docker-Distribution-Api-Version", "Etag", "Accept-Ranges")


@contextmanager
def real_registry(folder: Path) -> Iterator[int]:
    """The port of one that keeps its images in a folder. Without its program a test is skipped, or fails if it must
    not."""
    program = shutil.which("docker-registry")
    if program is None:
        missing = pytest.fail if os.environ.get("RAMIFY_REQUIRE_REGISTRY") == "1" else pytest.skip
        missing("there is no docker-registry here; .ci/run has a way to take it out of Debian's package")
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = int(free.getsockname()[1])
    config = folder / "registry.yml"
    config.write_text(_CONFIG.format(folder=folder / "images", port=port))
    with (folder / "registry.log").open("wb") as said:
        server = subprocess.Popen([program, "serve", str(config)], stdout=said, stderr=said)
    try:
        _wait_for(port, server)
        yield port
    finally:
        server.kill()
        server.wait()


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    for _ in range(READY_S * 10):
        assert server.poll() is None, "the registry did not start"
        with closing(socket.socket()) as door:
            if door.connect_ex(("127.0.0.1", port)) == 0:
                return
        threading.Event().wait(0.1)
    pytest.fail(f"the registry does not answer after {READY_S} s")


class Front(ThreadingHTTPServer):
    """Passes requests on to a registry, but for so many of the next ones for manifests, which it refuses."""

    daemon_threads = True

    def __init__(self, behind: int, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Passing)
        self.behind = behind
        self.refusals = 0
        self.layers = 0
        """Layers and configurations that were passed on whole."""
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Passing(BaseHTTPRequestHandler):
    server: Front

    def do_GET(self) -> None:
        if "/manifests/" in self.path and self.server.refusals:
            self.server.refusals -= 1
            told = {"errors": [{"code": "TOOMANYREQUESTS", "message": "You have reached your pull rate limit."}]}
            self._answer(429, {"Content-Type": "application/json"}, json.dumps(told).encode())
            return
        with closing(http.client.HTTPConnection("127.0.0.1", self.server.behind, timeout=READY_S)) as behind:
            behind.request(self.command, self.path, headers=_only(self.headers, _PASSED_ON))
            answer = behind.getresponse()
            data = answer.read()
            length = answer.getheader("Content-Length", str(len(data)))
            self._answer(answer.status, _only(answer.headers, _PASSED_BACK) | {"Content-Length": length}, data)
        self.server.layers += "/blobs/" in self.path and self.command == "GET"

    def do_HEAD(self) -> None:
        self.do_GET()

    def _answer(self, status: int, headers: dict[str, str], data: bytes) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(data))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


def _only(headers: http.client.HTTPMessage, names: tuple[str, ...]) -> dict[str, str]:
    """An engine accepts several kinds of manifest, by a header each, in any order."""
    return {name: ", ".join(headers.get_all(name, ())) for name in names if headers[name]}
