"""A bot that answers a red build: `bot.py CHECKOUT PATCH` writes a patch, and prints what a comment would say. If it is
killed, the same command goes on where it was."""

import subprocess
import sys
from pathlib import Path

from agent import RamifyError, Task, load, solve
from sandboxes import SandboxError, Workspace


def main(checkout: Path, patch: Path) -> int:
    """The exit code says whether there is something to propose."""
    head = subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], check=True, text=True, stdout=subprocess.PIPE)
    commit = head.stdout.strip()
    task = Task("red-build", "The build is red.", Workspace(path=checkout), "python3 -m pytest -q", base=commit)
    run = patch.with_name(f"{patch.stem}-{commit[:12]}")  # `ramify show` reads it; remove it when nobody will
    try:
        result = solve(task, load(overrides=["budget.max_seconds=120"]), run)
    except (RamifyError, SandboxError) as error:
        print(f"cannot search: {error}")
        return 2
    patch.write_bytes(result.patch)
    before, after = result.baseline["failed"], result.final["failed"]
    print(f"{result.status}: {before} failed, {after} with the patch; {result.nodes} states in {result.seconds:.0f} s")
    return 0 if result.status == "solved" and result.verified else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
