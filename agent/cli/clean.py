"""`ramify clean`: removes what earlier runs left on this machine."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from agent.counting import counted


def clean(
    states: Annotated[
        bool,
        typer.Option(
            "--states", help="Also remove the states of runs that have ended, which cannot be resumed after that."
        ),
    ] = False,
    environments: Annotated[
        bool,
        typer.Option(
            "--environments", help="Also remove environments and set-ups older than an hour that no run's states need."
        ),
    ] = False,
    all_users: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Also remove what other users and state directories left, and what all users of the engine share.",
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before removing states of runs that can be resumed.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("-n", "--dry-run", help="List what would be removed, and remove nothing.")
    ] = False,
) -> None:
    """Remove what earlier runs left on this machine. It lists what it removes, and keeps journals and patches."""
    from agent.cli.cleanup import kept_states, leftovers, resumable

    done = "would remove" if dry_run else "removed"
    count = size = 0
    ask = not dry_run and not yes
    for left in leftovers(states=states, environments=environments, all_users=all_users, ask=ask):
        if dry_run or left.remove():
            count, size = count + 1, size + left.size_bytes
            run = f" of run {left.store.parent}" if left.store else ""
            remark = " (it can be resumed)" if dry_run and left.store and resumable(left.store.parent) else ""
            sys.stdout.write(f"{done} {left.name}{run}, {left.size_bytes / (1 << 20):.0f} MiB{remark}\n")
    sys.stdout.write(f"{done} {count} in all, {size / (1 << 20):.0f} MiB\n" if count else "nothing to remove\n")
    if not states and (kept := kept_states())[0]:
        runs = counted(kept[0], "run that has ended", "runs that have ended")
        sys.stdout.write(f"the states of {runs} are kept, {kept[1] / (1 << 20):.0f} MiB: --states removes them\n")
