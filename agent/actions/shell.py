"""Runs shell commands and describes their output and how they ended.

Standard output and standard error are one stream, so that lines appear in the order in which they were written.
"""

from __future__ import annotations

import shlex
import sys

from agent.actions.excerpt import printable
from agent.actions.types import Observation, Shell
from agent.untrusted import terminal_text
from sandboxes import ExecResult, Sandbox

COMMAND_BYTES = 100_000
"""Size of the longest command: systems refuse single arguments of 128 KiB."""
_STANDARD = " ".join(sorted(name for name in sys.stdlib_module_names if not name.startswith("_")))
_RUN = """
for place in "$PWD" "$PWD/src"; do
  [ -d "$place" ] || continue
  for file in "$place"/*.py "$place"/*/__init__.py; do
    name=${file%/__init__.py} name=${name##*/}
    case " $2 " in *" ${name%.py} "*) continue 2 ;; esac
  done
  PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}$place
done
[ -z "$PYTHONPATH" ] || export PYTHONPATH
exec 2>&1
if command -v bash >/dev/null 2>&1; then exec env "BASH_FUNC_timeout%%=$3" bash -c "$1"; fi
exec /bin/sh -c "$1"
"""
"""Runs `$1`. Python programs can import from the workspace and its `src`, wherever they are; a folder that holds a
module named like one of the standard library (`$2`) would hide that module from every program, and is left out. `$3` is
a bash function; /bin/sh does not pass on variables with such a name."""
_TIMEOUT = """() {
  local code=0
  command timeout "$@" || code=$?
  case $code in 124 | 137 | 143)
    local notice="[timeout: the command was cut, with status $code; its output is not complete]"
    { echo "$notice" >/proc/$$/fd/1; } 2>/dev/null || echo "$notice" >&2
  esac
  return $code
}"""
"""In bash, `timeout` reports that it has cut its command, even if a pipe swallows its output and its status."""
_ENVIRONMENT = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "TERM": "dumb",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
}
"""Keeps programs from waiting for a person, leaving byte code that tests may list, and buffering their output."""
NOTHING_FOUND = 1
_SEARCHES = (["grep"], ["rg"], ["git", "grep"])
_SEPARATORS = ";&|\n"
"""Characters that separate commands."""
_ENDED_BY = {
    "memory": "it used more memory than is allowed",
    "pids": "it started too many processes",
    "disk": "it wrote more than is allowed",
}


def run(action: Shell, box: Sandbox) -> Observation:
    """Run a command of at most `COMMAND_BYTES`."""
    argv = ["/bin/sh", "-c", _RUN, "sh", action.command, _STANDARD, _TIMEOUT]
    result = box.exec(argv, timeout_s=action.timeout_s, env=_ENVIRONMENT)
    if result.timed_out:
        return timed_out(result, action.timeout_s)
    why = f" ({_ENDED_BY[result.limit]})" if result.limit else ""
    shown, unread = output(result)
    ok = result.exit_code == 0 or (result.exit_code == NOTHING_FOUND and ends_with_search(action.command))
    return Observation(f"exit code: {result.exit_code}{why}\n{shown}", ok=ok, elided_bytes=unread)


def ends_with_search(command: str) -> bool:
    """Whether the exit code of a command is that of a final `grep`. A 1 then means that nothing was found, which is
    success after a renaming. False if another program may have set the code."""
    lexer = shlex.shlex(command.strip(), posix=True, punctuation_chars=_SEPARATORS)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t", True, ""
    try:
        words = list(lexer)
    except ValueError:  # an unclosed quotation
        return False
    ends = [number for number, word in enumerate(words) if not word.strip(_SEPARATORS)]
    last = words[ends[-1] + 1 :] if ends else words
    sure = {"&&", "||", "set", "exit"}.isdisjoint(words) and "<<" not in command
    return sure and (last[:1] in _SEARCHES or last[:2] in _SEARCHES)


def timed_out(result: ExecResult, timeout_s: float) -> Observation:
    """The observation of a command that was killed at its time limit."""
    shown, unread = output(result)
    text = (
        f"The command did not end within {timeout_s:g} s and was killed. Nothing that it did was kept: files are as "
        f"they were before it. Its output until then:\n{shown}"
    )
    return Observation(text, ok=False, elided_bytes=unread, fork_lost=True)


def output(result: ExecResult) -> tuple[str, int]:
    """A program's output as a terminal shows it, and how many bytes of it the sandbox did not keep."""
    unread = result.stdout_bytes - len(result.stdout) + result.stderr_bytes - len(result.stderr)
    printed = (terminal_text(stream.decode("utf-8", "surrogateescape")) for stream in (result.stdout, result.stderr))
    parts = [*map(printable, printed)]
    if unread:
        parts.append(f"[{unread} more bytes of output were not kept]")
    return "\n".join(part.removesuffix("\n") for part in parts if part) or "(no output)", unread
