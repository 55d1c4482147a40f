"""Measures how fluent the page of a large run is: the cost of making it, and the time for a frame while it is used.

    python -m benchmarks.perf.page --states 5000

It needs the package `playwright`, and Chromium (`RAMIFY_CHROMIUM` names it). A frame is fluent within 1/60 s. A
headless browser draws on the CPU and has to wait on a busy machine, so the figure is the time of the quickest tenth of
the frames."""

from __future__ import annotations

import os
import shutil
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from agent.actions import Edit, Observation
from agent.analysis.report.web import as_html
from agent.measure import Outcome, SuiteReport
from agent.run.events import Added, Event, Started
from agent.run.journal import encode
from agent.run.tree.choice import Choice, Reason
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Node, Step
from benchmarks.perf.script import machine
from benchmarks.perf.table import Row, at_most, markdown
from sandboxes import Snapshot

STATES = 5_000
TESTS = 50
FRAME_MS = 16.7
SECONDS = 10
MEGABYTES = 5

ACTIONS = {
    "zoom in and out": "camera.by(i % 40 < 20 ? 1.1 : 1 / 1.1)",
    "drag the slider": "store.set({ step: Math.floor((i * history.length) / 60) })",
    "search while typing": "store.set({ query: String(i % 10), step: history.length })",
    "walk the tree": "store.set({ selected: (i * 37) % facts.nodes.length, query: '' })",
}
"""What a user does in the i-th frame, for each kind of use."""

MEASURE = """async (act) => {
  const { drawing, store, history, facts } = globalThis.ramify;
  const camera = drawing.camera;
  const step = new Function("i", "camera", "store", "history", "facts", act);
  const times = [];
  for (let i = 0; i < 60; i += 1) {
    await new Promise(requestAnimationFrame);
    const began = performance.now();
    step(i, camera, store, history, facts);
    await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    times.push((performance.now() - began) / 2);
  }
  return times;
}"""


def main() -> None:
    """Make the page, use it, and print a table."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=STATES, metavar="N")
    given = parser.parse_args()
    with TemporaryDirectory(prefix="ramify-") as folder:
        run = Path(folder)
        (run / "journal.jsonl").write_bytes(b"".join(map(encode, journal(given.states))))
        began = time.process_time()
        page = as_html(run)
        seconds = time.process_time() - began
        (run / "page.html").write_bytes(page)
        print(markdown([*_file(given.states, seconds, len(page)), *_use(given.states, run / "page.html")]))
    print(f"\n{machine()}; load {os.getloadavg()[0]:.1f}")


def journal(states: int) -> Iterator[Event]:
    """A search that goes deep in places; each state has an edit, and tests that differ from the base state's."""
    rng = Random(0)
    tests = [f"tests/test_{n % 7}.py::test_{n}" for n in range(TESTS)]
    base = Snapshot("s", "d")
    yield Started({"statement": "a big search"}, {}, base)
    for number in range(states):
        parents = () if number == 0 else (rng.randrange(max(0, number - 300), number),)
        outcomes = {test: Outcome.PASSED if rng.random() < number / states else Outcome.FAILED for test in tests}
        edit = Edit(f"pkg/m{number % 40}.py", f"x = {number}\n", f"x = {number + 1}\n", line=1)
        steps = (Step((edit,), (Observation("done"),)),) if parents else ()
        value = Evaluation(sum(o is Outcome.PASSED for o in outcomes.values()) / (TESTS + 1))
        choice = Choice(parents[0], reasons=(Reason(parents[0], {"score": 0.5, "mean": 0.4}, 9),)) if parents else None
        state = Snapshot(f"s{number}", f"d{number}")
        label = f"x to {number} at m{number % 40}.py:1"
        yield Added(Node(number, parents, steps, state, SuiteReport(outcomes), value, label=label), number, choice)


def _file(states: int, seconds: float, size: int) -> Iterator[Row]:
    yield at_most(f"making the page of {states} states", "", 1, seconds, SECONDS, " s of processor")
    yield at_most("its size", "", 1, size / 1e6, MEGABYTES, " MB")


def _use(states: int, page: Path) -> Iterator[Row]:
    from playwright.sync_api import sync_playwright

    path = os.environ.get("RAMIFY_CHROMIUM") or shutil.which("chromium")
    if path is None:
        sys.exit("no Chromium found: name it in RAMIFY_CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        opened: Any = browser.new_page(viewport={"width": 1440, "height": 900})
        opened.goto(page.as_uri())
        for name, act in ACTIONS.items():
            times = sorted(opened.evaluate(MEASURE, act))
            yield at_most(f"{name}: a frame", _spread(times), len(times), times[len(times) // 10], FRAME_MS, " ms")
        browser.close()


def _spread(times: Sequence[float]) -> str:
    return f"median {times[len(times) // 2]:.1f} ms, 95 % within {times[len(times) * 95 // 100]:.1f} ms"


if __name__ == "__main__":
    main()
