"""One HTML file that contains everything: the program, its style, and the escaped data.

Invariant: the page uses no network, and its content security policy says so; it runs only this one program, identified
by its digest, and no text of a run is ever markup.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from itertools import islice
from typing import Any, Literal

from agent.untrusted import visible

Page = Literal["tree", "batch"]
CHUNK = 64
"""How many objects are packed together; the page unpacks only the packs that it shows."""


def document(page: Page, title: str, facts: Mapping[str, Any], chunks: Sequence[str] = ()) -> bytes:
    """The HTML file. The page reads `facts` at once, and unpacks `chunks` when they are needed."""
    program, style = _asset("app.js"), _asset("style.css")
    policy = (
        f"default-src 'none'; script-src '{_digest(program)}'; style-src '{_digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<link rel="icon" href="data:,">',
        f"<title>{escape(visible(title))}</title>\n<style>{style}</style>\n</head>",
        f'<body data-page="{page}">\n<noscript>This page draws with JavaScript.</noscript>',
        f'<script type="application/json" id="facts">{_json(facts)}</script>',
        *(f'<script type="text/plain" class="chunk">{chunk}</script>' for chunk in chunks),
        f'<script type="text/plain" id="licences">{_asset("LICENSES.txt").replace("<", "&lt;")}</script>',
        f"<script>{program}</script>\n</body>\n</html>\n",
    ]
    return "\n".join(parts).encode("ascii", "xmlcharrefreplace")


def packed(objects: Iterable[Mapping[str, Any]]) -> list[str]:
    """Compressed JSON lists of `CHUNK` objects each; the same objects give the same texts."""
    rest = iter(objects)
    return [_pack(chunk) for chunk in iter(lambda: list(islice(rest, CHUNK)), [])]


def _pack(chunk: Sequence[Mapping[str, Any]]) -> str:
    return b64encode(gzip.compress(_json(chunk).encode(), mtime=0)).decode()


def _json(value: Any) -> str:
    """JSON in ASCII without HTML markup, and with invisible characters escaped."""
    text = json.dumps(_shown(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _shown(value: Any) -> Any:
    match value:
        case str():
            return visible(value)
        case Mapping():
            return {visible(str(key)): _shown(item) for key, item in value.items()}
        case list() | tuple():
            return [_shown(item) for item in value]
        case _:
            return value


@cache
def _asset(name: str) -> str:
    """A file beside this one, in ASCII and without a closing tag (`build.mjs` ensures both)."""
    return files(__package__).joinpath(name).read_text("ascii")


def _digest(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()
