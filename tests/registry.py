"""A registry of images for tests: a real server on this machine, which a real engine pulls from and which can say that
it is busy or fail; and an engine for tests that says what a test wants of a pull."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from docker import DockerClient

WAIT_S = 100
_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
_BUSY = {"errors": [{"code": "TOOMANYREQUESTS", "message": "You have reached your pull rate limit."}]}


class Registry(ThreadingHTTPServer):
    """Holds one image, of one small file, under every name."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.refusals = 0
        """So many of the next requests for a manifest are refused."""
        self.refused_with = 429
        self.asked = 0
        """Requests for a manifest so far."""
        self.at_once = 0
        """The most requests for manifests that were answered at the same time."""
        self.missing = False
        """The registry has no image at all."""
        self.lingers_s = 0.0
        """How long each such request waits for others to come, until there are more than `crowd`."""
        self.crowd = 0
        self.crowded = threading.Event()
        self.lock = threading.Lock()
        self.busy = 0
        self.blobs, self.manifest = _image()

    def name(self, repository: str = "tiny") -> str:
        """What an engine calls the image."""
        return f"localhost:{self.server_port}/{repository}:latest"


def _image() -> tuple[dict[str, bytes], bytes]:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        entry = tarfile.TarInfo("file")
        entry.size = 1
        tar.addfile(entry, io.BytesIO(b"x"))
    layer = gzip.compress(archive.getvalue(), mtime=0)
    root = {"type": "layers", "diff_ids": [_digest(archive.getvalue())]}
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": root}).encode()
    described = [
        {"mediaType": kind, "size": len(data), "digest": _digest(data)}
        for kind, data in (
            ("application/vnd.docker.container.image.v1+json", config),
            ("application/vnd.docker.image.rootfs.diff.tar.gzip", layer),
        )
    ]
    manifest = {"schemaVersion": 2, "mediaType": _MANIFEST, "config": described[0], "layers": described[1:]}
    return {_digest(config): config, _digest(layer): layer}, json.dumps(manifest).encode()


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


class _Handler(BaseHTTPRequestHandler):
    server: Registry

    def do_GET(self) -> None:
        kind, _, reference = self.path.rpartition("/")
        if kind.endswith("/manifests"):
            self._manifest()
        elif kind.endswith("/blobs"):
            self._answer(200, self.server.blobs[reference], "application/octet-stream")
        else:
            self._answer(200, b"{}", "application/json")

    def do_HEAD(self) -> None:
        self.do_GET()

    def _manifest(self) -> None:
        server = self.server
        with server.lock:
            server.asked += 1
            server.busy += 1
            server.at_once = max(server.at_once, server.busy)
            if server.busy > server.crowd:
                server.crowded.set()
            refused = server.refusals > 0
            server.refusals -= refused
        server.crowded.wait(server.lingers_s)
        if refused:
            body = json.dumps(_BUSY if server.refused_with == 429 else {}).encode()
            self._answer(server.refused_with, body, "application/json")
        elif server.missing:
            self._answer(404, b"{}", "application/json")
        else:
            self._answer(200, server.manifest, _MANIFEST)
        with server.lock:
            server.busy -= 1

    def _answer(self, status: int, data: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        if kind == _MANIFEST:
            self.send_header("Docker-Content-Digest", _digest(data))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


class Engine(ThreadingHTTPServer):
    """Has no image, knows that no name has capitals, and answers each pull with the next of `answers`: lines of its
    stream, `silent`, or `gone` for a connection that breaks; the last is repeated. Lines with a barrier come when as
    many pulls as it says wait there."""

    daemon_threads = True

    def __init__(self, *answers: bytes | str | tuple[threading.Barrier, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Pulled)
        self.answers = list(answers)
        self.over = threading.Event()
        self.asked = threading.Event()
        """Of a first image."""
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def client(self, timeout_s: float = 60) -> DockerClient:
        """One that takes this for Docker."""
        return DockerClient(base_url=f"tcp://127.0.0.1:{self.server_port}", version="1.41", timeout=timeout_s)

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.shutdown()
        self.server_close()


class _Pulled(BaseHTTPRequestHandler):
    server: Engine

    def do_GET(self) -> None:
        no_name = self.path != self.path.lower()
        body = b'{"message": "%s"}' % (b"invalid reference format" if no_name else b"No such image")
        self.send_response(400 if no_name else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.server.asked.set()
        answers = self.server.answers
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if answer == "silent":
            self.server.over.wait()
        if isinstance(answer, tuple):
            answer[0].wait(WAIT_S)
            answer = answer[1]
        if isinstance(answer, bytes):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def registry() -> Iterator[Registry]:
    """A registry that serves while the block runs."""
    with Registry() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield server
        server.shutdown()
