"""The states of a store: each is an image on the engine, described by a file in the store.

The engine keeps the image of a discarded state exactly as long as another image is built on it.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from sandboxes import Snapshot, SnapshotMissing
from sandboxes.commit.manifest import Entry, Manifest, apply, digest
from sandboxes.docker.client import labels, removed

if TYPE_CHECKING:
    from docker import DockerClient


MAX_LAYERS = 100
"""A state with more layers is flattened into one. The engine's overlay2 refuses more than 125."""
_REPOSITORY = "ramify-state"


@dataclass(frozen=True, slots=True)
class State:
    """The facts about a state. A base state is its own base."""

    id: str
    image: str
    """The name of its image on the engine."""
    base: str
    workdir: str
    user: str
    """The user who runs commands: `uid:gid`."""
    env: Mapping[str, str]
    """Environment variables of every command."""
    tree: Mapping[str, Entry | None]
    """The workspace: complete for a base state, else its differences from the base. None: deleted."""
    outside: Mapping[str, Entry | None] = field(default_factory=dict)
    """Differences from the base outside the workspace, by absolute path. None: deleted."""
    tracked: tuple[str, ...] = ()
    exclude: str = ""

    @property
    def digest(self) -> str:
        """As `Snapshot.digest`."""
        return digest(self.base, {} if self.id == self.base else self.tree, self.outside)

    @property
    def owner(self) -> tuple[int, int]:
        """The user and group that own its files."""
        user, _, group = self.user.partition(":")
        return int(user), int(group)

    @property
    def snapshot(self) -> Snapshot:
        """The state as a `sandboxes.Snapshot`."""
        return Snapshot(self.id, self.digest)


class States:
    """The states of one store. Thread-safe."""

    def __init__(self, client: DockerClient, store: Path) -> None:
        self._client = client
        self._place = store / "commit"
        self._place.mkdir(parents=True, exist_ok=True)
        self.marks = labels(self._named(), store)
        """The labels of everything that is made for the store."""
        self.base_tree = lru_cache(maxsize=4)(self._base_tree)

    def _named(self) -> str:
        note = self._place / "run"
        if not note.exists():
            _write(note, f"ramify-run-{secrets.token_hex(6)}")
        return note.read_text(encoding="ascii")

    def load(self, name: str) -> State:
        """Load a state.

        Raises:
            SnapshotMissing: the store has no state of this name.
        """
        try:
            facts = json.loads(self._file(name).read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise SnapshotMissing(f"there is no state {name} in {self._place}") from error
        for part in ("tree", "outside"):
            facts[part] = {path: tuple(entry) if entry else None for path, entry in facts[part].items()}
        return State(**{**facts, "tracked": tuple(facts["tracked"])})

    def _file(self, name: str) -> Path:
        return self._place / f"{Path(name).name}.json"

    def names(self) -> tuple[str, ...]:
        """The names of all states that are not discarded."""
        return tuple(path.stem for path in self._place.glob("*.json") if not path.stem.endswith(".base"))

    def manifest(self, state: State) -> Manifest:
        """Return the manifest of a state's whole workspace."""
        base = self.base_tree(state.base)
        return base if state.id == state.base else apply(base, state.tree)

    def base(self, name: str) -> State:
        """Load a base state. Its facts can be read even after it was discarded."""
        try:
            return self.load(name)
        except SnapshotMissing:
            return self.load(f"{name}.base")

    def _base_tree(self, name: str) -> Manifest:
        return apply({}, self.base(name).tree)

    def new(self, container: str, facts: State, *, base: bool = False) -> State:
        """Freeze a stopped container into a state. `facts` has everything except its id and image."""
        name = f"commit-{secrets.token_hex(8)}"
        self._client.api.commit(
            container, repository=_REPOSITORY, tag=name, conf={"Labels": self.marks, "Cmd": ["/bin/sh"]}
        )
        image = f"{_REPOSITORY}:{name}"
        if len(self._client.images.get(image).attrs["RootFS"]["Layers"]) > MAX_LAYERS:
            flatten(self._client, image, image, self.marks)
        state = replace(facts, id=name, image=image, base=name if base else facts.base)
        _write(self._file(name), json.dumps(asdict(state)))
        return state

    def discard(self, state: State) -> None:
        """Forget a state. Its image is removed together with the last image built on it."""
        if state.id == state.base:
            _write(self._file(f"{state.id}.base"), json.dumps(asdict(state)))
        self._file(state.id).unlink(missing_ok=True)
        removed(partial(self._client.api.remove_image, state.image))


def flatten(client: DockerClient, image: str, name: str, marks: Mapping[str, str]) -> None:
    """Make an image `name` with the files and settings of another image in a single layer."""
    config = client.images.get(image).attrs["Config"]
    container = client.api.create_container(
        image, ["true"], labels=dict(marks), host_config=client.api.create_host_config(network_mode="none")
    )["Id"]
    repository, _, tag = name.rpartition(":")
    changes = [f"ENV {key}={_quoted(value)}" for key, _, value in (e.partition("=") for e in config.get("Env") or ())]
    changes += [f"LABEL {key}={_quoted(value)}" for key, value in marks.items()]
    changes += [
        f"{word} {config[key]}" for word, key in (("WORKDIR", "WorkingDir"), ("USER", "User")) if config.get(key)
    ]
    changes += [
        f"{word} {json.dumps(config[word.title()])}" for word in ("ENTRYPOINT", "CMD") if config.get(word.title())
    ]
    try:
        client.api.import_image(
            src=client.api.export(container), repository=repository, tag=tag, changes=changes, stream_src=True
        )
    finally:
        client.api.remove_container(container, v=True, force=True)


def _quoted(value: str) -> str:
    """Quote a value for a Dockerfile instruction."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    return f'"{escaped}"'


def _write(path: Path, text: str) -> None:
    draft = path.with_suffix(f".{secrets.token_hex(4)}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
