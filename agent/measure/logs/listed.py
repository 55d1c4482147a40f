"""Logs of browsers, mocha and others that name failed tests only; SWE-bench reads them `fail_only`.

Names are built as by SWE-bench's own parsers (5.0.2, `harness/log_parsers/javascript.py`), to match its rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import pairwise

from agent.measure import Outcome
from agent.measure.logs.lines import Ends

CHROME = re.compile(r"Chrome [\d.]+ \([^)]+\) (.*)FAILED$")
NUMBERED = re.compile(r"\d+\)\s(.*)")
BROWSER = re.compile(
    r"(?:PhantomJS [\d.]+ \(Linux (?:[\d.]+|x86_64)\)|Chrome Headless .* \(Linux x86_64\)"
    r"|HeadlessChrome [\d.]+ \(Linux [\d.]+\)) (.*)FAILED"
)
CHROME_ON_LINUX = re.compile(r"Chrome (?:Headless )?[\d.]+ \(Linux \S+\) (.*)FAILED")
MISMATCH = re.compile(r"case\s(.*):\smismatch")
ITEM = re.compile(r"\s{2}\d+\)")
ITEM_LINE = re.compile(r"^\s{2}\d+\)", re.MULTILINE)
SPACE = re.compile(r"\s")
P5_ITEM = re.compile(r"^[^\S\n]*\d+\)", re.MULTILINE)
P5_CHARACTERS = 1000
OPENS = re.compile(r"<(\w+)>")
CLOSES = re.compile(r"</(\w+)>")
BLOCKS = {"{": "}", "[": "]"}


def _by_browser(pattern: re.Pattern[str], text: str) -> Ends:
    """Karma's failures; the space after the name is kept."""
    for line in text.split("\n"):
        if line.endswith("FAILED") and (match := pattern.search(line)):
            yield match[1], Outcome.FAILED


chart_js = partial(_by_browser, CHROME)
bpmn_js = partial(_by_browser, BROWSER)


def marked(text: str) -> Ends:
    """The items of a numbered list."""
    for line in text.split("\n"):
        if match := NUMBERED.match(line):
            yield match[1].strip(), Outcome.FAILED


def openlayers(text: str) -> Ends:
    """Karma's failures, mocha's list, and pictures that differ."""
    for name, outcome in _by_browser(CHROME_ON_LINUX, text):
        yield _one_line(name), outcome
    for line in text.split("\n"):
        if match := MISMATCH.match(line):
            yield _one_line(match[1]), Outcome.FAILED
    end = 0
    while (item := ITEM_LINE.search(text, end)) and (error := text.find("Error:", item.end())) >= 0:
        yield _one_line(text[item.end() : error]), Outcome.FAILED
        end = error


def eslint(text: str) -> Ends:
    """Mocha's list: the text between a number and the line of the error."""
    end = 0
    while (item := ITEM.search(text, end)) and (found := _up_to_error(text, item.end())):
        name, end = found
        yield _one_line(name), Outcome.FAILED


def _up_to_error(text: str, begin: int) -> tuple[str, int] | None:
    """The text before the next line with an error, and the end of that line; if the error is on the item's own line,
    the text before the first space."""
    error = begin
    while (error := text.find("Error", error)) >= 0:
        line, after = text.rfind("\n", begin, error), text.find("\n", error)
        last = text.rfind("Error", error, after if after >= 0 else len(text))
        if line >= 0:
            return text[begin:line], last
        if space := SPACE.search(text, begin, last):
            return text[begin : space.start()], last
        error = last + 1
    return None


def p5js(text: str) -> Ends:
    """Mocha's list: suites and name on a line each, every line indented deeper than the one before, up to a colon."""
    plain = _without_tags("\n".join(_without_json(text)))
    end = 0
    while item := P5_ITEM.search(plain, end):
        end = plain.find(":", item.end(), item.end() + P5_CHARACTERS + 1)
        if end < 0:
            end = item.end()
            continue
        lines = plain[item.end() : end].split("\n")
        if _slanting(lines):
            yield ":".join(map(str.strip, lines)), Outcome.FAILED


def _slanting(lines: list[str]) -> bool:
    indents = [0, *(len(line) - len(line.lstrip()) for line in lines)]
    return all(before < after for before, after in pairwise(indents))


def _without_json(text: str) -> Iterator[str]:
    """The lines outside objects and lists that the tests print."""
    inside = set[str]()
    for line in text.split("\n"):
        stripped = line.rstrip()
        if stripped[-1:] in BLOCKS:
            inside.add(BLOCKS[stripped[-1]])
        elif stripped in inside:
            inside.remove(stripped)
        elif not inside and BLOCKS.get(stripped[:1]) != stripped[-1:]:
            yield line


def _without_tags(text: str) -> str:
    """The text without complete elements and their content, in a single pass."""
    last = {match[1]: match.start() for match in CLOSES.finditer(text)}
    kept, begin = [], 0
    for tag in OPENS.finditer(text):
        if begin <= tag.start() <= last.get(tag[1], -1):
            kept.append(text[begin : tag.start()])
            begin, open_still = _end_of(text, tag[1], tag.start(), last[tag[1]])
            kept.append(tag[0] * open_still)
    return "".join([*kept, text[begin:]])


def _end_of(text: str, name: str, begin: int, last: int) -> tuple[int, int]:
    """The end of the element that starts at `begin`, and how many elements of that name inside it are never closed."""
    depth = 0
    while begin <= last:
        close = text.find(f"</{name}>", begin)
        depth += text.count(f"<{name}>", begin, close) - 1
        begin = close + len(name) + len("</>")
        if not depth:
            break
    return begin, depth


def _one_line(name: str) -> str:
    return " ".join(name.split())
