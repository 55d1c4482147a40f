"""The size on disk of a state after an edit of three files, compared with the layer that `docker commit` makes.

The files are of median size: a state keeps each changed file whole, so large files would dominate the figure.
"""

from __future__ import annotations

import subprocess
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from benchmarks.perf import peer
from benchmarks.perf.bench import Bench, chosen
from benchmarks.perf.repositories import MOUNT, Repository
from benchmarks.perf.script import main
from benchmarks.perf.table import Row, at_most
from sandboxes.docker.images import BASE_IMAGE

N = 4
FILES = 3
GOAL_KB = 100
STATES = ("layers", "states")
"""Where the store keeps states; the rest of it belongs to running leases."""


def rows(bench: Bench, given: Namespace) -> Iterator[Row]:
    """A row for each repository: `n` states of the same edit, which share only the base."""
    for repository in {r.project: r for r in chosen(given.repositories)}.values():
        edit = typical(bench.path(repository))
        bench.base(repository)
        sizes = [grown_kb(bench, repository, edit) for _ in range(given.n or N)]
        content = sum((bench.path(repository) / name).stat().st_size for name in edit) / 1024
        layer = layer_kb(bench, repository, edit)
        what = f"a state of a {len(edit)}-file edit on disk ({repository.project})"
        ours = f"{max(sizes):.0f} KB; the files themselves {content:.0f} KB"
        yield at_most(what, ours, len(sizes), max(sizes), GOAL_KB, " KB", usual=f"{layer:.0f} KB")


def typical(path: Path) -> list[str]:
    """The relative paths of the non-empty Python files of median size in a checkout."""
    files = sorted(
        (file for file in path.rglob("*.py") if file.stat().st_size), key=lambda file: (file.stat().st_size, file)
    )
    first = max(0, (len(files) - FILES) // 2)
    return [str(file.relative_to(path)) for file in files[first : first + FILES]]


def grown_kb(bench: Bench, repository: Repository, edit: list[str]) -> float:
    """How much the store grows, in blocks of the file system, by a snapshot after a change to each of these files."""
    before = used_kb(bench, repository)
    with bench.provider(repository).at(bench.base(repository)) as box:
        for path in edit:
            box.write(path, box.read(path) + b"\n# edited\n")
        box.snapshot()
    return used_kb(bench, repository) - before


def used_kb(bench: Bench, repository: Repository) -> float:
    """The size of all states."""
    if bench.kind == "namespace":
        places = [str(bench.store(repository) / name) for name in STATES]
        output = subprocess.run(["du", "-sck", *places], capture_output=True, check=True).stdout
    else:
        volume = (bench.store(repository) / "volume").read_text()
        inside = [f"/states/{name}" for name in STATES]
        output = peer.docker(
            "run", "--rm", "--network", "none", "-v", f"{volume}:/states:ro", BASE_IMAGE, "du", "-sck", *inside
        )
    return float(output.split()[-2])


def layer_kb(bench: Bench, repository: Repository, edit: list[str]) -> float:
    """The size of the layer of `docker commit` after a change to the same files and one run of the test."""
    image = bench.image(repository)
    with peer.container(bench.client, image) as box:
        for path in edit:
            peer.docker("exec", "-w", MOUNT, str(box.id), "sh", "-c", f"echo '# edited' >> {path}")
        peer.docker("exec", "-w", MOUNT, str(box.id), "python3", "-m", "pytest", "-q", repository.test)
        changed = peer.committed(box)
    try:
        sizes = [int(bench.client.images.get(name).attrs["Size"]) for name in (image, changed)]
    finally:
        peer.removed(bench.client, changed)
    return (sizes[1] - sizes[0]) / 1024


if __name__ == "__main__":
    main(__doc__, rows)
