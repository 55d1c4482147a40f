"""`ramify serve-report`: show a batch or a folder of runs in a browser, or write it as a folder of files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.help import HELP, example, new_app
from agent.counting import counted
from agent.errors import UsageError

if TYPE_CHECKING:
    from benchmarks.reports.site import Site


REFRESH_S = 10
"""Seconds after which the page of a run that has not ended reloads itself."""

app = new_app(add_completion=False)


@app.command(context_settings=HELP, epilog=example("ramify serve-report runs", "ramify serve-report runs --out site"))
def serve_report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A batch, a run, or a folder of either.")],
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="Port; 0: any free one.")] = 8765,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="DIR", help="Write the pages as files there instead, for CI to keep."),
    ] = None,
) -> None:
    """Show a batch or a folder of runs in a browser. It shows a table, curves, and the tree of each run, and follows a
    running batch. The server is reachable from this machine only, and is read-only."""
    from benchmarks.reports.site import Site

    site = Site(folder, refresh_s=REFRESH_S if out is None else None)
    index = site.index()
    if out is None:
        _serve(site, port)
    else:
        _write(site, index, out)


def _serve(site: Site, port: int) -> None:
    from benchmarks.reports.site_server import HOST, make_server

    try:
        server = make_server(site, port)
    except OSError as error:
        raise UsageError(f"--port {port} cannot be used: {error.strerror}; give another, or 0 for any") from error
    with server:
        sys.stdout.write(f"http://{HOST}:{server.server_address[1]}/ shows {site.folder}; stop it with Ctrl-C\n")
        sys.stdout.flush()
        server.serve_forever()


def _write(site: Site, index: bytes, out: Path) -> None:
    from agent.errors import JournalError
    from agent.files import write_atomically

    (out / "runs").mkdir(parents=True, exist_ok=True)
    for page in (pages := site.pages()):
        try:
            if (html := site.tree(page)) is not None:
                write_atomically(out / page, html)
        except JournalError as error:
            sys.stderr.write(f"left out: {error}\n")
    write_atomically(out / "index.html", index)
    sys.stdout.write(f"{out / 'index.html'}: {counted(len(pages), 'run')}\n")
