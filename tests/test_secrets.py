"""Keys of the environment, through a whole run: the provider gets them, and nothing else does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.errors import ConfigError
from agent.models.registry import make
from agent.redaction import redacted
from tests.projects import BUG, FIX, means
from tests.scripted_server import ScriptedServer, fails, says

PLANTED = {
    "OPENAI_API_KEY": "sk-planted-0123456789abcdef",
    "ANTHROPIC_API_KEY": "sk-ant-planted-0123456789",
    "AWS_SECRET_ACCESS_KEY": "/planted+secret/0123456789abcdef",
    "HF_TOKEN": "hf_planted0123456789",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[bytes], Path, ScriptedServer]:
    """A whole run by the command line, with its log, of a provider that quotes the key wherever it can, and of a model
    that looks for it."""
    folder = tmp_path_factory.mktemp("secrets")
    key = PLANTED["OPENAI_API_KEY"]
    hunt = "env; cat /proc/*/environ | tr '\\0' '\\n'; echo looked"
    script = [
        fails(500, f"crashed on {key}", retry_after="0.1"),
        says(f"I was called with {key}.", ("shell", {"command": hunt}), reasoning_content=f"the key is {key}"),
        says(
            f"So {key}", ("edit", {"path": "means.py", "old": BUG, "new": FIX}), ("shell", {"command": f"echo {key}"})
        ),
        says("Done.", ("submit", {})),
    ]
    with ScriptedServer(script) as server:
        argv = ["solve", "--issue", "mean([]) divides by zero", "--repo", means(folder / "repo"), "--json"]
        argv += ["--policy", "openai/tiny", "-c", f"model.base_url={server.url}", "--out", folder / "run"]
        argv += ["--sandbox", "namespace", "-c", 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}']
        argv += ["-c", "measure.baseline_runs=1"]
        home = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(folder), "RAMIFY_DEBUG": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "agent", *argv],
            env={**home, **PLANTED, "PYTHONPATH": str(Path(__file__).parent.parent)},
            capture_output=True,
            timeout=500,
            check=False,
        )
    return done, folder, server


@pytest.mark.namespace
class TestSecrets:
    @pytest.mark.slow
    def test_are_in_nothing_that_is_printed_or_kept(self, told: Any) -> None:
        done, folder, server = told
        assert done.returncode == 0, done.stderr[-2000:]
        assert server.keys[0] == f"Bearer {PLANTED['OPENAI_API_KEY']}"
        written = {"stdout": done.stdout, "stderr": done.stderr}
        written |= {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for secret in PLANTED.values():
            assert not [place for place, data in written.items() if secret.encode() in data]

    def test_are_taken_out_of_what_a_model_says_before_it_is_carried_out(self, told: Any) -> None:
        _, _, server = told
        conversation = server.requests[-1]["messages"]
        assert "I was called with [OPENAI_API_KEY]." in [message["content"] for message in conversation]
        assert any("looked" in str(message["content"]) for message in conversation if message["role"] == "tool")
        assert not [secret for secret in PLANTED.values() if secret in str(conversation)]

    def test_are_no_hindrance_to_say_that_the_price_is_unknown_and_what_to_do(self, told: Any) -> None:
        done, _, _ = told
        assert b"the price of openai/tiny is unknown" in done.stderr
        assert done.stderr.count(b"--model-price IN,OUT") == 1
        assert json.loads(done.stdout)["cost_usd"] is None


def test_a_secret_is_found_as_it_is_and_as_json_writes_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MY_API_KEY", 'two\nlines "quoted"')
    monkeypatch.setenv("MY_LONGER_API_KEY", 'two\nlines "quoted" and more')
    monkeypatch.setenv("MY_KEY_FILE", str(tmp_path))
    monkeypatch.setenv("SHORT_TOKEN", "none")
    said = f'{{"text": {json.dumps(os.environ["MY_API_KEY"])}}} {os.environ["MY_LONGER_API_KEY"]} {tmp_path} none'
    assert redacted(said) == f'{{"text": "[MY_API_KEY]"}} [MY_LONGER_API_KEY] {tmp_path} none'


def test_a_password_in_a_base_url_is_refused() -> None:
    with pytest.raises(ConfigError, match="environment"):
        make("openai/tiny", base_url="http://me:secret@localhost:8000/v1")
