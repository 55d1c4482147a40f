"""Kill -9 at any event, with several workers: whatever was in flight is begun again, each proposal once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from agent.events import Added, Failed
from agent.journal import read_events
from agent.underway import TRIES
from tests.attacks.searching import EDITS, MORE, Plan
from tests.projects import means
from tests.test_killed import traces, wait_for

pytestmark = pytest.mark.namespace

LIVELY = settings(max_examples=3, deadline=None, phases=[Phase.explicit, Phase.generate])
EVERY_EDIT = [f"edit {n}" for n in range(EDITS)] + [f"edit {n} {m}" for n in range(EDITS) for m in range(MORE)]


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory, namespaces: Path) -> Path:
    return means(tmp_path_factory.mktemp("project") / "repo")


def search(repo: Path, run: Path, plan: Plan) -> str | None:
    """The status of a search in another process, which leaves nothing behind; None: it was killed."""
    command = [sys.executable, "-m", "tests.attacks.searching", repo, run, json.dumps(asdict(plan))]
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, timeout=100, check=False)
    wait_for(lambda: not traces(run, str(run)))
    assert str(run).encode() not in Path("/proc/mounts").read_bytes()
    assert done.returncode in (0, -signal.SIGKILL)
    return done.stdout.decode() if done.returncode == 0 else None


def tried(run: Path) -> Counter[str]:
    """The edits that came to an end, with how often each did."""
    events = list(read_events(run / "journal.jsonl"))
    failed = [event.reason for event in events if isinstance(event, Failed)]
    return Counter([e.node.label for e in events if isinstance(e, Added) and e.node.parents] + failed)


@LIVELY
@given(workers=st.integers(2, 4), slow=st.integers(0, 2), kills=st.tuples(st.integers(9, 20), st.integers(1, 20)))
def test_a_search_that_is_killed_tries_in_the_end_what_one_tries_that_is_not(
    repo: Path, tmp_path_factory: pytest.TempPathFactory, workers: int, slow: int, kills: tuple[int, int]
) -> None:
    run = tmp_path_factory.mktemp("killed") / "run"
    first, second = kills
    assert search(repo, run, Plan(workers, dies_at=first, waits=slow)) is None
    search(repo, run, Plan(workers, dies_at=second))
    assert search(repo, run, Plan(workers)) == "no_patch"
    assert tried(run) == Counter(EVERY_EDIT)


def test_the_only_right_edit_was_in_flight_when_the_process_was_killed(repo: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert search(repo, run, Plan(fix=1, waits=1, dies_at=20)) is None
    assert search(repo, run, Plan(fix=1)) == "solved"
    assert tried(run)["edit 1"] == 1
    assert max(tried(run).values()) == 1


def test_a_proposal_that_kills_the_process_each_time_fails_at_last_and_takes_no_other_with_it(
    repo: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert [search(repo, run, Plan(workers=3, kills=1)) for _ in range(TRIES + 1)] == [None] * TRIES + ["no_patch"]
    failed = f"the process that carried it out was killed each of {TRIES} times"
    assert tried(run) == Counter([*EVERY_EDIT, failed]) - Counter(["edit 1", "edit 1 0"])
