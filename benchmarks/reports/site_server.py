"""Serves a site on this machine only, read-only.

Invariant: a request names a page of `benchmarks.reports.site`, never a file. It must come from this machine and name
this machine as the host, so that no foreign page can read the site (DNS rebinding).
"""

from __future__ import annotations

import logging
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from agent.errors import RamifyError
from benchmarks.reports.site import Site

HOST = "127.0.0.1"
log = logging.getLogger(__name__)


def make_server(site: Site, port: int) -> ThreadingHTTPServer:
    """Return a server for the site, which already listens on its port but answers only once `serve_forever` is called.
    Port 0: any free port.

    Raises:
        OSError: the port is taken.
    """

    class Handler(_Handler):
        pages = site

    return ThreadingHTTPServer((HOST, port), Handler)


class _Handler(BaseHTTPRequestHandler):
    pages: Site
    timeout = 30
    """Seconds that a client may take for a request."""

    def do_GET(self) -> None:
        """Send the requested page."""
        self._answer(body=True)

    def do_HEAD(self) -> None:
        """Send the headers only."""
        self._answer(body=False)

    def log_message(self, template: str, *args: object) -> None:
        """Log requests as debug messages."""
        log.debug(template, *args)

    def _answer(self, *, body: bool) -> None:
        status, page = self._find()
        kind = "text/html" if status is HTTPStatus.OK else "text/plain"
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        for name, value in (
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "DENY"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
        ):
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(page)

    def _find(self) -> tuple[HTTPStatus, bytes]:
        assert isinstance(self.server, ThreadingHTTPServer)
        port = self.server.server_port
        if self.headers.get("Host") not in (f"{HOST}:{port}", f"localhost:{port}"):
            return HTTPStatus.FORBIDDEN, b"this server answers to 127.0.0.1 and localhost alone\n"
        name = unquote(urlsplit(self.path).path).removeprefix("/")
        try:
            page = self.pages.tree(name) if name else self.pages.index()
            return (HTTPStatus.OK, page) if page is not None else (HTTPStatus.NOT_FOUND, b"no such page\n")
        except RamifyError as error:
            return HTTPStatus.INTERNAL_SERVER_ERROR, f"{error}\n".encode(errors="replace")
