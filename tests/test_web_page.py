"""The page of a run: one file that reaches no network, and nothing that a run recorded is ever markup on it."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode, b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.actions import Edit, Replacement
from agent.analysis.report import web
from agent.analysis.report.web.details import details
from agent.analysis.report.web.document import document
from agent.analysis.report.why import explain
from agent.budget import Usage
from agent.cli.app import app
from agent.run.events import Added, Ended
from tests.histories import History, turn
from tests.pages import HOSTILE, STARTED, SUITE, asked, state, told, write

FOLDER = Path(web.__file__).parent


def test_a_page_carries_the_licences_of_what_it_is_made_of() -> None:
    libraries = json.loads((FOLDER / "package-lock.json").read_text())["packages"]
    shown = document("tree", "a run", {}).decode()
    for name in ("d3-hierarchy", "d3-zoom", "d3-selection", "d3-quadtree"):
        assert f"node_modules/{name}" in libraries
        assert name in shown.split('id="licences">')[1].split("</script>")[0]


class Parsed(HTMLParser):
    """The elements of a page, and the text of each script and style."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(page.decode("ascii"))

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.elements and self.elements[-1][0] in ("script", "style", "title") and data.strip():
            self.inside.append((*self.elements[-1], data))

    @property
    def facts(self):
        return next(json.loads(text) for _, attributes, text in self.inside if attributes.get("id") == "facts")

    @property
    def details(self):
        chunks = [text for _, attributes, text in self.inside if attributes.get("class") == "chunk"]
        return [one for chunk in chunks for one in json.loads(gzip.decompress(b64decode(chunk)))]

    @property
    def policy(self):
        return next(a["content"] for tag, a in self.elements if "http-equiv" in a)


def page_of(directory, events, **more):
    return web.as_html(write(directory, events, **more))


@pytest.fixture
def page(tmp_path):
    return Parsed(page_of(tmp_path / "run", told()))


def test_its_policy_lets_it_run_its_own_program_and_reach_nothing(page):
    rules = dict(rule.strip().split(" ", 1) for rule in page.policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    for rule, tag in (("script-src", "script"), ("style-src", "style")):
        (text,) = [text for name, attributes, text in page.inside if name == tag and not attributes]
        assert rules[rule] == f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
    assert {a[key] for _, a in page.elements for key in ("src", "href", "action") if key in a} == {"data:,"}


def test_no_text_of_a_run_becomes_markup_or_hides(page):
    allowed = {"html", "head", "meta", "link", "title", "style", "body", "noscript", "script"}
    assert {tag for tag, _ in page.elements} == allowed
    assert page.facts["nodes"][1]["label"].startswith("+ 1 </script><img src=x onerror=alert(1)>")
    assert "\\u202e\\ud800" in page.facts["nodes"][1]["label"]


def test_the_same_journal_gives_the_same_bytes(tmp_path):
    assert page_of(tmp_path / "run", told()) == page_of(tmp_path / "run", told())


def test_it_says_what_happened_in_the_order_of_the_journal_and_what_was_spent_by_then(page):
    kinds = [moment["kind"] for moment in page.facts["moments"]]
    assert kinds[:7] == ["started", "added", "asked", "added", "added", "failed", "merged"]
    assert (page.facts["moments"][1]["usd"], page.facts["moments"][2]["usd"]) == (0.0, 0.25)
    assert page.facts["usage"]["cost_usd"] == page.facts["moments"][-1]["usd"]


def test_a_price_that_is_not_known_is_not_nothing(tmp_path):
    call = asked(0, "", "policy")
    unknown = replace(call, answer=replace(call.answer, usage=Usage(model_calls=1, unpriced_calls=1)))
    moments = Parsed(page_of(tmp_path / "run", [*told()[:2], unknown])).facts["moments"]
    assert [moment["unpriced"] for moment in moments] == [0, 0, 1]


def test_every_state_has_its_edits_as_a_diff_and_its_tests_against_the_base_state(page):
    two = page.details[2]
    assert two["diff"].splitlines()[:4] == ["--- a/calc.py", "+++ b/calc.py", "@@ from line 7 on @@", "-return a - b"]
    assert two["tests"]["changed"] == {SUITE[0]: "passed"}
    assert list(two["tests"]["said"].values()) == [f"assert 1 == 2 {shown(HOSTILE)}"]
    assert page.details[5]["diff"] == ""
    assert page.details[5]["turns"][0]["acts"][0]["refused"]


def test_an_edit_of_several_places_is_shown_with_all_that_went_and_all_that_came(tmp_path):
    history = History(tmp_path / "run")
    history.add(0, turn(Edit("calc.py", "a", "b", more=(Replacement("c", "d"),))))
    *_, made = details(history.run, history.run.journal.events())
    history.run.close()
    action = made["turns"][0]["acts"][0]["action"]
    assert (action["old"], action["new"], action["more"]) == ("a\nc", "b\nd", ())


def shown(text):
    return text.encode("utf-8", "backslashreplace").decode().replace("\u202e", "\\u202e")


def test_it_gives_the_reasons_that_the_terminal_gives(page):
    why = explain(told(), 2)
    assert [page.details[node]["made"]["number"] for node in why.path[1:]] == [s.number for s in why.selections]
    assert {each["outcome"] for each in page.details[2]["others"]} == {"merged", "measured"}
    assert [each["label"] for each in page.details[1]["others"]] == ["no answer"]


def test_states_are_told_apart_by_what_became_of_them(page):
    assert [node["state"] for node in page.facts["nodes"]] == ["base", "better", "better", "worse", "solved", "worse"]
    assert "pruned" in page.facts["nodes"][1]["marks"]
    assert "merged" in page.facts["nodes"][2]["marks"]
    assert [node["round"] for node in page.facts["nodes"]] == [1, 1, 1, 2, 2, 2]


def test_settings_that_no_page_needs_are_not_on_it(tmp_path):
    page = page_of(tmp_path / "run", told())
    assert b"not for a page" not in page
    assert Parsed(page).facts["settings"] == {"policy": "chat", "search": "mcts", "rollouts": 4}


@pytest.mark.parametrize("end", range(4))
def test_a_run_that_was_killed_at_any_event_has_a_page(tmp_path, end):
    parsed = Parsed(page_of(tmp_path / "run", told()[:end], torn=b'{"kind": "added", "no'))
    assert parsed.facts["status"] == "running"
    assert len(parsed.details) == len(parsed.facts["nodes"]) == max(0, (end > 1) + (end > 3))


def test_a_run_that_goes_on_meanwhile_is_shown_as_it_was_when_it_was_read(tmp_path, monkeypatch):
    directory, read = tmp_path / "run", web.read_events

    def read_then_written(journal):
        events = list(read(journal))
        write(directory, told())
        return events

    monkeypatch.setattr(web, "read_events", read_then_written)
    parsed = Parsed(page_of(directory, told()[:3]))
    assert [len(parsed.facts["nodes"]), len(parsed.details)] == [1, 1]
    assert len(Parsed(web.as_html(directory)).details) > 1


def test_a_journal_that_kept_no_choices_has_a_page(tmp_path):
    old = [
        STARTED,
        Added(state(0, (), 0.1)),
        Added(state(1, (0,), 0.5)),
        Ended("improved", "NODES", 1, False, "f" * 64),
    ]
    parsed = Parsed(page_of(tmp_path / "run", old))
    assert parsed.details[1]["made"]["choice"] is None
    assert parsed.details[1]["patch"] == ""


class TestCommand:
    def test_it_writes_the_file_and_says_so(self, tmp_path):
        run = write(tmp_path / "run", told())
        done = CliRunner().invoke(app, ["show", str(run), "--html", str(tmp_path / "tree.html")])
        assert (done.exit_code, "0.1 MB" in done.stderr) == (0, True)
        assert len(Parsed((tmp_path / "tree.html").read_bytes()).facts["nodes"]) == 6

    def test_a_dash_is_stdout(self, tmp_path):
        run = write(tmp_path / "run", told())
        done = CliRunner().invoke(app, ["show", str(run), "--html", "-"])
        assert done.stdout_bytes.startswith(b"<!doctype html>")

    def test_a_place_that_cannot_be_written_is_named(self, tmp_path):
        run = write(tmp_path / "run", told())
        done = CliRunner().invoke(app, ["show", str(run), "--html", str(tmp_path / "no" / "tree.html")])
        assert done.exception is not None
        assert "no/tree.html cannot be written" in str(done.exception)


class TestVendoring:
    def test_the_program_was_made_from_these_sources(self):
        digest = sha256(b"".join(path.read_bytes() for path in sorted((FOLDER / "src").iterdir()))).hexdigest()
        remedy = "run scripts/vendor-web and commit what it makes"
        assert f"src/ (sha256 {digest})" in (FOLDER / "app.js").read_text("ascii").splitlines()[0], remedy

    def test_every_library_in_it_has_its_licence_beside_it(self):
        named = re.findall(r"^(d3-[a-z]+) \d", (FOLDER / "LICENSES.txt").read_text(), re.MULTILINE)
        wanted = json.loads((FOLDER / "package.json").read_text())["dependencies"]
        assert wanted.keys() <= set(named)
        assert (FOLDER / "LICENSES.txt").read_text().count("Permission to use, copy, modify") + 1 >= len(named)

    def test_the_lock_names_what_it_takes_by_its_content_and_no_host(self):
        packages = json.loads((FOLDER / "package-lock.json").read_text())["packages"]
        taken = {name: package for name, package in packages.items() if name}
        assert all("integrity" in package and "resolved" not in package for package in taken.values())
