"""Which runs are known, while they come and go."""

import subprocess
from pathlib import Path

from agent.run.paths import known_runs, runs_dir


def test_runs_are_listed_while_others_are_removed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for name in ("kept", "removed"):
        (runs_dir() / name).mkdir(parents=True)
        (runs_dir() / name / "journal.jsonl").touch()
    program = "import os\nwhile True: os.rename('journal.jsonl', 'gone'); os.rename('gone', 'journal.jsonl')"
    with subprocess.Popen(["python3", "-c", program], cwd=runs_dir() / "removed") as other:
        try:
            assert all(runs_dir() / "kept" in known_runs() for _ in range(5000))
        finally:
            other.kill()
