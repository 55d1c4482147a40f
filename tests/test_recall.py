"""Recall: what a model is told of earlier repairs, in which run, and that nothing is told where memory is off."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from agent.build.composition import resume, start
from agent.build.replay import replay
from agent.learning.memory import Memory
from agent.learning.memory.clusters import cluster_of
from agent.learning.memory.composing import compose
from agent.learning.memory.items import Insight
from agent.learning.memory.recall import OPENING, Lookup
from agent.learning.memory.store import QUERY_WORDS
from agent.models import BYTES_PER_TOKEN
from agent.run.run import Run
from agent.settings import MemorySettings, Settings
from agent.task import Task
from tests.clients import KEY
from tests.memories import REPAIR, recorded, report, state, task
from tests.projects import BUG, FIX, commit, means
from tests.projects import task as repair_of
from tests.scripted_server import ScriptedServer, says
from tests.test_memory import ISSUES, PARAPHRASE, remember

LESSON = "Ask of every reduction what it does with nothing."


@pytest.fixture
def five(tmp_path: Path) -> Memory:
    """Five past repairs."""
    memory = Memory(tmp_path / "memory.db")
    for name, statement in ISSUES.items():
        remember(memory, recorded(tmp_path / name, task(statement), insights=[LESSON, f"Of {name}: look twice."]))
    return memory


class Notes:
    """What a run knows."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}

    def __call__(self, key: str, find: Callable[[], Any]) -> Any:
        if key not in self.found:
            self.found[key] = json.loads(json.dumps(find()))
        return self.found[key]


def lookup(memory: Memory, **changes: int) -> Lookup:
    """As the settings have it."""
    given = MemorySettings(**changes)  # type: ignore[arg-type]
    return Lookup(memory, given.demos, given.insights, given.tokens)


BROKEN = report({"t.py::lost": "E   LookupError: nothing there"})
ROOT = state(0, None, 0.1, BROKEN)


class TestWhatIsTold:
    def test_holds_the_likest_repairs_and_insights_within_the_limit(self, five: Memory) -> None:
        notes = Notes()
        text = lookup(five, demos=2, insights=3, tokens=700)(task(PARAPHRASE), (ROOT,), notes)
        assert len(text.encode()) <= 700 * BYTES_PER_TOKEN
        assert text.index(ISSUES["mean"]) < text.index("What earlier repairs taught:")
        kinds = "".join(each[0] for each in notes.found[OPENING]["ids"])
        assert (kinds.count("e"), kinds.count("i")) == (2, 3)
        (lesson,) = [each for each in five.store.items("insight") if each.searched == LESSON]
        assert f"- {LESSON} [{lesson.id}, from 5 runs]" in text

    def test_is_looked_up_by_the_errors_however_long_the_issue_is(self, tmp_path: Path) -> None:
        memory = Memory(tmp_path / "m.db")
        remember(memory, recorded(tmp_path / "r", task(ISSUES["mean"])))
        long = " ".join(map("".join, product("bcdfghjk", repeat=3)))
        assert len(long.split()) > QUERY_WORDS
        root = state(0, None, 0.1, report({"t.py::other": "E   ZeroDivisionError: division by zero"}))
        look = lookup(memory, insights=0)
        assert ISSUES["mean"] in look(task(long), (root,), Notes())
        assert ISSUES["mean"] not in look(task(long), (ROOT,), Notes())

    def test_names_what_verified_each_repair(self, five: Memory) -> None:
        text = lookup(five)(task(PARAPHRASE), (ROOT,), Notes())
        (source,) = [each.id for each in five.store.sources().values() if each.issue.statement == ISSUES["mean"]]
        assert f"- solved in {source}: state 1, verified: 2 tests pass and 0 fail with its patch [e" in text

    def test_leaves_out_what_does_not_fit_and_keeps_what_does(self) -> None:
        items = [Insight(f"i{n}", ("run",), text) for n, text in enumerate(("short", "long " * 80, "brief"))]
        assert compose(items, 60).ids == ("i0", "i2")
        assert compose(items, 10).text == compose([], 1000).text == ""

    def test_says_nothing_of_the_issue_itself(self, five: Memory) -> None:
        text = lookup(five, demos=5, insights=9)(task(ISSUES["mean"]), (ROOT,), Notes())
        assert "parse_date" in text
        assert not any(leak in text for leak in ("mean() raises", "Of mean", LESSON))

    def test_says_nothing_of_the_issue_itself_where_an_error_turns_up_either(self, tmp_path: Path) -> None:
        memory = Memory(tmp_path / "m.db")
        remember(memory, recorded(tmp_path / "r", task(ISSUES["mean"])))
        path = (ROOT, state(1, 0, 0.2, report({"t.py::lost": "E   ZeroDivisionError: division by zero"})))
        assert lookup(memory)(task(ISSUES["mean"]), path, Notes()) == ""
        assert "widened the comparison" in lookup(memory)(task(ISSUES["date"]), path, Notes())

    def test_is_looked_up_once_and_does_not_change_with_the_memory(self, five: Memory, tmp_path: Path) -> None:
        notes, asked = Notes(), task(PARAPHRASE)
        before = lookup(five)(asked, (ROOT,), notes)
        five.prune(runs=[*five.store.sources()])
        assert lookup(five)(asked, (ROOT,), notes) == before
        assert lookup(five)(asked, (ROOT,), Notes()) == ""

    def test_is_nothing_where_the_file_is_damaged_meanwhile(self, five: Memory) -> None:
        notes, look = Notes(), lookup(five)
        five.store.path.write_bytes(b"no database" * 500)
        assert look(task(PARAPHRASE), (ROOT,), notes) == ""
        assert notes.found == {OPENING: {"text": "", "ids": []}}

    def test_shows_characters_that_nobody_sees_as_escapes(self, tmp_path: Path) -> None:
        memory = Memory(tmp_path / "m.db")
        hidden = report({"t.py::zero": "E   ZeroDivisionError: division\u200b by zero"})
        states = (state(0, None, 0.1, hidden), *REPAIR[1:])
        about = task(ISSUES["mean"])
        remember(memory, recorded(tmp_path / "r", about, states=states, insights=["Look\u202e twice."]))
        text = lookup(memory)(task(PARAPHRASE), (ROOT,), Notes())
        assert "Look\\u202e twice." in text
        assert "division\\u200b by zero" in text
        assert "\u200b" not in text

    def test_differs_between_steps_by_the_error_that_turned_up(self, five: Memory) -> None:
        key = report({"t.py::lost": "E   ZeroDivisionError: division by zero"})
        steps = (ROOT, state(1, 0, 0.2, BROKEN), state(2, 1, 0.3, key), state(3, 2, 0.3, key))
        notes, look = Notes(), lookup(five)
        told = [look(task("quite another thing"), steps[: n + 1], notes) for n in range(4)]
        assert [("Where a test failed in the same way" in text) for text in told] == [False, False, True, False]
        assert "- ZeroDivisionError: division by zero: changed means.py: widened the comparison [x" in told[2]
        (experience,) = five.met([cluster_of("ZeroDivisionError: division by zero")], 1)
        assert told[2].count("[x") == 2
        assert experience.id in told[2]


OTHER = {
    "ratio.py": "def ratio(part, whole):\n    if whole < 0:\n        return 0.0\n    return part / whole\n",
    "test_ratio.py": "from ratio import ratio\n\n\ndef test_ratio_of_nothing():\n    assert ratio(1, 0) == 0.0\n",
    ".gitignore": "__pycache__/\n",
}
WIDEN = ("edit", {"path": "means.py", "old": BUG, "new": FIX})
WRONG, RIGHT = (
    ("edit", {"path": "ratio.py", "old": f"    if whole {old} 0:\n", "new": f"    if whole {new} 0:\n"})
    for old, new in (("<", ">"), (">", "<="))
)
TEST = ("run_tests", {})


class Story:
    """A repair of one project, and then three of another one that is alike: before anything is remembered, with the
    memory of the first, which is gone in the middle, and with memory off."""

    def __init__(self, folder: Path, server: ScriptedServer) -> None:
        self.folder, self.server = folder, server
        self.file = folder / "memory.db"
        first = repair_of(means(folder / "means"))
        statement = "ratio(1, 0) fails: it divides by zero"
        second = repair_of(commit(folder / "ratio", OTHER), id="ratio", statement=statement)
        self.bare = self.heard(second, "bare", max_nodes=2)
        self.heard(first, "one", path=str(self.file))
        self.told = self.heard(second, "two", max_nodes=2, path=str(self.file))
        self.known = {source.issue.task_id for source in Memory(self.file).store.sources().values()}
        self.file.unlink()
        self.result = resume(folder / "two", budget={"max_nodes": 9})
        self.told_later: list[dict[str, Any]] = _untimed(server.requests[-1]["messages"])
        self.off = self.heard(second, "off", max_nodes=2, path=str(self.file), enabled=False)

    def heard(self, about: Task, name: str, max_nodes: int = 9, **memory: Any) -> list[dict[str, Any]]:
        """What the model is told first of all in a run."""
        settings = {
            "policy": {"name": "openai/tiny"},
            "search": {"name": "best_of_n"},
            "model": {"base_url": self.server.url, "price": [0, 0]},
            "sandbox": {"kind": "namespace"},
            "measure": {"baseline_runs": 1},
            "budget": {"max_nodes": max_nodes},
            "memory": memory,
        }
        begun = len(self.server.requests)
        start(about, Settings.model_validate_json(json.dumps(settings)), self.folder / name)
        return _untimed(self.server.requests[begun]["messages"])


def _untimed(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages without how long the suite took."""
    told: list[dict[str, Any]] = json.loads(re.sub(r"takes about \d+ s", "takes about 1 s", json.dumps(messages)))
    return told


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, namespaces: Path) -> Iterator[Story]:
    nothing, repair = says("Fine.", ("submit", {})), says("a", RIGHT, TEST)
    answers = [nothing, says("Widened.", WIDEN, TEST), says("b", WRONG, TEST), repair, nothing]
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(answers) as server:
        patch.setenv("OPENAI_API_KEY", KEY)
        yield Story(tmp_path_factory.mktemp("story"), server)


@pytest.mark.slow
@pytest.mark.namespace
class TestASecondRun:
    def test_is_told_what_the_first_one_learned(self, story: Story) -> None:
        length = len(story.bare)
        assert story.told[:length] == story.bare
        (memory,) = story.told[length:]
        assert "mean([]) divides by zero" in memory["content"]
        assert "ZeroDivisionError: division by zero: changed means.py: Widened." in memory["content"]
        assert story.known == {"means", "ratio"}

    def test_is_told_nothing_where_memory_is_off(self, story: Story) -> None:
        assert json.dumps(story.off) == json.dumps(story.bare)

    def test_is_gone_on_with_as_it_began_whatever_the_memory_has_become(self, story: Story) -> None:
        assert story.result.status == "solved"
        assert story.told_later[: len(story.told)] == story.told
        assert [each.issue.task_id for each in Memory(story.file).store.sources().values()] == ["ratio"]

    def test_is_replayed_without_the_memory_and_not_remembered_again(self, story: Story) -> None:
        before = Memory(story.file).store.sources()
        again = replay(story.folder / "two", story.folder / "replayed")
        assert (again.difference, again.reused, again.missing) == ("", 2, 0)
        with Run.read(story.folder / "two") as two, Run.read(story.folder / "replayed") as replayed:
            assert two.note(0, OPENING)["ids"]
            assert two.note(0, OPENING) == replayed.note(0, OPENING)
        assert Memory(story.file).store.sources() == before
