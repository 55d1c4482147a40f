"""Every error that a caller of Ramify can meet, with the exit code of the command line.

    RamifyError                  exit
     +-- UsageError               2    an argument is wrong: no repository, unknown test, empty issue, bad value
     |    +-- OptionRefused       2    the value of an option is not one that its setting takes
     +-- ConfigError              3    an unknown key or value, a missing key, an unknown model
     +-- ModelError               4    the provider refused or failed: authentication, quota, outage
     |    +-- ToolsRefused        4    the server takes no tools with a request
     |    +-- Stopped             4    the run ended while it waited for its model; the run says how it ended
     +-- PolicyError              5    the policy failed: unreadable format, context overflow
     |    +-- TooLong             5    the model refuses a conversation of this length
     +-- MeasureError             2    the tests cannot be run at all: nothing collected, no result to trust
     |    +-- NoSuchCommand       2    the test command does not exist, or cannot be executed
     +-- JournalError             6    the run directory is not a run, or belongs to a newer version
     |    +-- RunInUse            6    another process holds the run
     |    +-- BlobLost            6    a file that the journal names is missing, or has other content
     +-- MemoryUnusable           6    the memory file is not one, or belongs to a newer version

`sandboxes.SandboxError` (exit 6; `sandboxes.SetupFailed` 2) is not a RamifyError: the package `sandboxes` does not
depend on this one.
"""

from __future__ import annotations

from agent.budget import Usage
from sandboxes import SetupFailed


class RamifyError(Exception):
    """Base class. `str(error)` is one line for the user: the offending value and the remedy."""

    exit_code = 6
    usage = Usage()
    """What a failed model call cost; the handler of the error records it."""


class UsageError(RamifyError):
    """An argument is wrong."""

    exit_code = 2


class OptionRefused(UsageError):
    """The value of an option is not one that its setting takes."""

    def __init__(self, key: str, value: object, reason: str) -> None:
        super().__init__(f"`{key}` is {value!r}, but {reason}")
        self.key = key
        """The dotted key of the setting."""
        self.value = value
        self.reason = reason


class ConfigError(RamifyError):
    """A setting is wrong or missing."""

    exit_code = 3


class ModelError(RamifyError):
    """The model provider refused or failed."""

    exit_code = 4


class ToolsRefused(ModelError):
    """The server takes no tools with a request. A policy can describe them in words instead."""


class Stopped(ModelError):
    """The run was cancelled, or its time is over, while it waited for a model."""


class PolicyError(RamifyError):
    """The policy failed, and retries did not help."""

    exit_code = 5


class TooLong(PolicyError):
    """The model refuses a conversation of this length. A policy can leave something out."""


class MeasureError(RamifyError):
    """The tests cannot be run at all."""

    exit_code = UsageError.exit_code


class NoSuchCommand(MeasureError):
    """The test command does not exist, or cannot be executed."""


class JournalError(RamifyError):
    """A run directory cannot be read."""


class RunInUse(JournalError):
    """Another process holds the run."""


class BlobLost(JournalError, FileNotFoundError):
    """A file that the journal names is missing or has other content."""


class MemoryUnusable(RamifyError):
    """A memory file cannot be read or written."""


def exit_code_of(error: BaseException) -> int:
    """Return the exit code of the command line after an error of any kind."""
    if isinstance(error, SetupFailed):
        return UsageError.exit_code
    return error.exit_code if isinstance(error, RamifyError) else RamifyError.exit_code
