"""Removes the parts of an issue's Markdown that its page does not show: comments, hidden elements, alternative texts,
tooltips.

Code in blocks and in `spans` stays as it is, since a comment there is an example. A Markdown parser finds the blocks of
code; between them, the construct that begins first decides how the text after it is read, as on the page. Text that a
reader can unfold (`<details>`) stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LEFT_OUT = "[hidden text left out]"
PROSE_WORDS = 4
"""An attribute of a tag with at least this many words is taken for prose."""

_TOKEN = re.compile(
    r"""
      (?P<escaped> \\[\\`<!\[] )
    | (?P<span> (?<!`)(?P<ticks>`+)(?!`)[^\n]{0,2000}?(?<!`)(?P=ticks)(?!`) )
    | (?P<comment> <!--(?:-?>|.*?(?:--!?>|\Z)) | <!\[CDATA\[.{0,2000}?\]\]> | <\?.{0,2000}?\?> )
    | (?P<tag> <(?P<close>/)?(?P<name>[a-zA-Z][\w:-]*)
        (?P<rest>(?:\s(?:[^<>"']|"[^"]{0,5000}"|'[^']{0,5000}')*)?/?)> )
    | (?P<definition> ^[ >]{0,8}\[(?P<label>[^\]\n]{1,1000})\]:[ \t]*\n?[ \t]*(?P<target><[^>\n]*>|[^\s<]\S*)
        (?P<title>[^\n]*(?:\n[ \t]*["'(][^\n]*["')][ \t]*)?)$ )
    | (?P<image> !\[[^\]]{0,5000}\](?=[(\[]) )
    | (?P<tooltip> (?<=\])\(\s*(?P<url><[^>\n]{0,5000}>|[^\s()]{1,5000})\s+
        (?:"[^"]{0,5000}"|'[^']{0,5000}'|\([^)]{0,5000}\))\s*\) )
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_ATTRIBUTE = re.compile(r"\"[^\"]*\"|'[^']*'|([^\s\"'<>/=]+)(?:\s*=\s*(\"[^\"]*\"|'[^']*'|[^\s\"'=<>`]+))?")
_INVISIBLE = re.compile(
    r"display:none|visibility:hidden|opacity:0(?:\.0*)?(?![.\d])|font-size:(?:0(?:\.0*)?(?![.\d])|1p[xt])"
    r"|(?<![-\w])color:(?:white|\#fff(?:fff)?|transparent)(?!\w)|(?:left|top|text-indent|margin-left):-\d{3,}"
    r"|(?<!-)(?:height|width):0(?:px)?(?:;|$)"
)
_SILENT = frozenset({"script", "style", "template", "noscript", "title", "iframe", "object", "noembed", "noframes"})
"""Elements whose content is not shown as text. A start tag without an end tag is taken for a mention of the element."""
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)
_PAYLOAD = re.compile(r"(data:[\w.+-]+/[\w.+-]+;base64,)[\w+/=%-]{200,}")


def as_shown(text: str) -> str:
    """Return a Markdown text without the parts that its page hides. Hidden elements leave a mark, comments do not."""
    text = _PAYLOAD.sub(r"\1...", text.replace("\r\n", "\n").replace("\r", "\n"))
    shown, hidden, depth = list[str](), "", 0
    for between, token in _pieces(text):
        shown.append("" if hidden else between)
        if token is None:
            continue
        if not hidden:
            hidden, depth = _hides(token, text), 1
            shown.append(LEFT_OUT if hidden else _replaced(token))
        elif (token["name"] or "").lower() == hidden:
            depth += -1 if token["close"] else 1
            hidden = hidden if depth else ""
    return "".join(shown)


def _pieces(text: str) -> Iterator[tuple[str, re.Match[str] | None]]:
    """The text in pieces, each with the token that follows it; None after a block of code and at the end."""
    at = 0
    for start, end in (*_code(text), (len(text), len(text))):
        for token in _TOKEN.finditer(text, at, start):
            yield text[at : token.start()], token
            at = token.end()
        yield text[at:end], None
        at = end


def _code(text: str) -> Iterator[tuple[int, int]]:
    """The start and end of each block of code, in order."""
    from markdown_it import MarkdownIt

    offsets = [0, *(newline.end() for newline in re.finditer("\n", text)), len(text)]
    for block in MarkdownIt("commonmark").disable("inline").parse(text):
        if block.type in ("fence", "code_block") and block.map is not None:
            first, last = block.map
            yield offsets[first], offsets[min(last, len(offsets) - 1)]


def _replaced(token: re.Match[str]) -> str:
    """The visible replacement of a token that hides no text after it."""
    match token.lastgroup:
        case "comment":
            return ""
        case "tag":
            return _without_prose(token)
        case "definition":
            return "" if token["target"] in ("#", "<>") else f"[{token['label']}]: {token['target']}"
        case "image":
            return "![]"
        case "tooltip":
            return f"({token['url']})"
    return token[0]


def _hides(token: re.Match[str], text: str) -> str:
    """The name of the hidden element that begins here, or ''."""
    if not token["name"] or token["close"]:
        return ""
    name, attributes = token["name"].lower(), dict(_attributes(token["rest"]))
    if name in _VOID or token["rest"].endswith("/"):
        return ""
    if name in _SILENT:
        return name if re.compile(rf"</{name}\s*>", re.IGNORECASE).search(text, token.end()) else ""
    style = "".join(attributes.get("style", "").lower().split())
    if name == "font":
        style += f"color:{attributes.get('color', '')};font-size:{attributes.get('size', '')}".lower()
    return name if "hidden" in attributes or _INVISIBLE.search(style) else ""


def _without_prose(token: re.Match[str]) -> str:
    """Return a tag without the attributes that hold prose, since its page does not show them."""
    rest = token["rest"]
    for attribute in _ATTRIBUTE.finditer(token["rest"]):
        name, value = (attribute[1] or "").lower(), attribute[2] or ""
        if len(value.split()) >= PROSE_WORDS or (value and name in ("alt", "title")):
            rest = rest.replace(attribute[0], "", 1)
    return token[0].replace(token["rest"], rest) if rest != token["rest"] else token[0]


def _attributes(rest: str) -> Iterator[tuple[str, str]]:
    return ((match[1].lower(), (match[2] or "").strip("\"'")) for match in _ATTRIBUTE.finditer(rest) if match[1])
