"""mini-swe-agent's trajectories (`*.traj.json`, formats `mini-swe-agent-1` and `mini-swe-agent-1.1`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

from agent.actions import Observation, Shell
from agent.analysis.trajectories import Trajectory, typed
from agent.run.action_log import ActionRecord, action_record

_BLOCK = re.compile(r"```(?:bash|sh|mswea_bash_command)\s*\n(.*?)\n```", re.DOTALL)
_OLD_OUTPUT = re.compile(r"<returncode>(-?\d+)</returncode>\s*(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Action:
    command: str = ""
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class _Extra:
    actions: list[_Action] | None = None
    raw_output: str | None = None
    returncode: int | None = None


@dataclass(frozen=True, slots=True)
class _Message:
    role: str = ""
    content: Any = None
    tool_call_id: str | None = None
    call_id: str | None = None
    extra: _Extra = field(default_factory=_Extra)

    @property
    def commands(self) -> list[_Action]:
        """The commands that the model asks for. Before format 1.1 they are only in the text."""
        if self.extra.actions is not None:
            return self.extra.actions
        text = self.content if self.role == "assistant" and isinstance(self.content, str) else ""
        return [_Action(command.strip()) for command in _BLOCK.findall(text)]

    @property
    def output(self) -> Observation | None:
        """The result of a command, if the message is one."""
        if self.extra.raw_output is not None:
            return Observation(self.extra.raw_output, ok=self.extra.returncode == 0)
        old = _OLD_OUTPUT.search(self.content) if self.role == "user" and isinstance(self.content, str) else None
        return Observation(old[2], ok=old[1] == "0") if old else None


@dataclass(frozen=True, slots=True)
class _Info:
    exit_status: str | None = None
    submission: str | None = None
    config: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _File:
    messages: list[_Message]
    info: _Info = field(default_factory=_Info)
    trajectory_format: str = "mini-swe-agent-1"


def read(path: Path, data: Any) -> Trajectory:
    """The trajectory. Commands whose output the file lacks, such as the one that submits, have an empty one.

    Raises:
        agent.errors.UsageError: it is not a trajectory of this program.
    """
    file = typed(_File, data, path)
    environment = file.info.config.get("environment")
    place = environment.get("cwd") if isinstance(environment, dict) else None
    action_records = tuple(_action_records(file.messages, (str(place),) if place else ("/testbed",)))
    ended = file.info.exit_status or "not ended"
    return Trajectory(file.trajectory_format, action_records, ended, file.info.submission or "")


def _action_records(messages: Sequence[_Message], places: Sequence[str]) -> Iterator[ActionRecord]:
    for number, message in enumerate(messages):
        actions = message.commands
        answers = list(takewhile(lambda later: not later.commands, messages[number + 1 :])) if actions else []
        named = {answer.tool_call_id or answer.call_id: answer.output for answer in answers}
        unnamed = [answer.output for answer in answers if answer.output is not None]
        for position, action in enumerate(actions):
            output = named.get(action.tool_call_id) if action.tool_call_id else None
            if output is None and not action.tool_call_id and position < len(unnamed):
                output = unnamed[position]
            yield action_record(None, Shell(action.command), output or Observation(""), places)
