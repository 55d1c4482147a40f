"""The guest's main process: reads requests from stdin and answers them, or forks a process that serves a lease."""

from __future__ import annotations

import fcntl
import json
import os
from typing import Callable, Dict, List, NoReturn, Optional, Tuple

from .comparing import compare, contents
from .disk_usage import check_frozen
from .frames import FREEZE, OVER, Json, Refused, failure, receive, reply
from .freeze import freeze
from .imports import import_tree
from .init import OWN_PIDS
from .kernel import exit_code
from .lease import Lease
from .removing import remove_tree
from .shared import expire, listing, reserve, size, usage, use
from .store import Store, digest_of, hashed, home, needs, new_id
from .sweeping import sweep
from .template import Template
from .views import Bases, close_late

VERSION = 1
SHARED = "environments"
"""The area that all runs on a machine share."""


class Server:
    """Keeps states and grants one lease at a time."""

    def __init__(self, config: Json) -> None:
        self.config = config
        self.areas: Dict[str, Store] = {name: Store(config[name]) for name in ("store", SHARED)}
        self.name = new_id()
        self.count = 0
        self.bases = {area: Bases(store, store.at("leases", self.name, "spare")) for area, store in self.areas.items()}
        """`spare` is a directory for temporary mounts."""
        self.template: Optional[Template] = None
        self.trash = start_remover()
        for area, store in self.areas.items():
            with store.locked():
                left = sweep(store, shared=area == SHARED)
                self.claim(store)
            for path in left:
                self.throw_away(path)
        for limit in ("memory", "pids"):
            if config.get(limit + "_events"):
                config[limit + "_fd"] = os.open(config[limit + "_events"], os.O_RDONLY)
        OWN_PIDS.append(os.open("/proc/self/ns/pid", os.O_RDONLY))

    def claim(self, store: Store) -> None:
        """Make this server's directory in a store, and lock it while the server runs."""
        for name in ("root", "spare"):
            os.makedirs(store.at("leases", self.name, name))
        fcntl.flock(os.open(store.at("leases", self.name), os.O_RDONLY | os.O_DIRECTORY), fcntl.LOCK_EX)

    def _bases(self, request: Json) -> Bases:
        return self.bases[request.get("area", "store")]

    def throw_away(self, path: str) -> None:
        """Queue a directory for removal. If it still exists when this process ends, a later guest removes it."""
        os.write(self.trash, os.fsencode(path) + b"\0")

    def serve(self) -> NoReturn:
        """Serve requests until killed."""
        operations: Dict[str, Callable[[Json], Tuple[Json, bytes]]] = {
            "import": lambda request: import_tree(self._area(request), request),
            "make_root": self.make_root,
            "make_base": self.make_base,
            "info": self._info,
            "compare": lambda request: compare(self._area(request), request, self._bases(request)),
            "discard": self._discard,
            "retain": self._retain,
            "usage": lambda request: ({"bytes": usage(self._area(request))}, b""),
            "reserve": lambda request: reserve(self.areas[SHARED], request),
            "entries": lambda request: listing(self.areas[SHARED]),
            "expire": lambda request: expire(self.areas[SHARED], request),
        }
        reply({"guest": VERSION})
        while True:
            request, payload = receive()
            try:
                if request["op"] == "lease":
                    self.lease(request)
                elif request["op"] == "contents":
                    contents(self._area(request), request, self._bases(request))
                elif request["op"] == "template":
                    self.start_template(request, payload)
                    reply({})
                elif request["op"] in operations:
                    reply(*operations[request["op"]](request))
                else:
                    raise Refused("sandbox", "there is no operation %s outside a lease" % request["op"])
            except (OSError, Refused, RecursionError) as error:
                reply(failure(error))
            close_late()

    def _area(self, request: Json) -> Store:
        return self.areas[request.get("area", "store")]

    def _discard(self, request: Json) -> Tuple[Json, bytes]:
        self._area(request).discard(request["ids"])
        return {}, b""

    def _retain(self, request: Json) -> Tuple[Json, bytes]:
        store = self._area(request)
        store.discard(sorted(set(store.names()) - set(request["ids"])))
        return {}, b""

    def _info(self, request: Json) -> Tuple[Json, bytes]:
        state = self._area(request).load(request["id"])
        return {name: state[name] for name in ("id", "digest", "workdir", "env")}, b""

    def make_root(self, request: Json) -> Tuple[Json, bytes]:
        """Make the first state of a workspace or of an environment."""
        store = self._area(request)
        mounts = [
            {"target": target, "lower": lower, "chain": [], "base": 0, "delta": {}}
            for target, lower in request["mounts"]
        ]
        environment = self._build_on(store, mounts, request["environment"]) if request.get("environment") else ""
        if request.get("layer"):
            target = home([entry["target"] for entry in mounts], request["workdir"])[0]
            entry = next(entry for entry in mounts if entry["target"] == target)
            entry.update(chain=[*entry["chain"], request["layer"]], base=entry["base"] + 1)
        state = {
            "id": new_id(),
            "base": hashed([environment, request["key"]]),
            "mounts": mounts,
            "workdir": request["workdir"],
            "env": request["env"],
            "user": request.get("user") or [0, 0],
        }
        state["digest"] = digest_of(state)
        return store.save(state), b""

    def _build_on(self, store: Store, mounts: List[Json], name: str) -> str:
        """Put a shared entry's layers under every mount that both have, and return the entry's digest."""
        area = self.areas[SHARED]
        built = area.load(name) if store is area else use(area, name, self.config["name"])
        layers = {entry["target"]: entry["chain"] for entry in built["mounts"]}
        for entry in mounts:
            chain = layers.get(entry["target"], [])
            entry["chain"] = list(chain) if store is area else [area.at(layer) for layer in chain]
            entry["base"] = len(chain)
        return str(built["digest"])

    def make_base(self, request: Json) -> Tuple[Json, bytes]:
        """Make a base state, which later states are compared with. If the request has `entry`, save it under that name
        as an environment that other stores may use."""
        store = self._area(request)
        state = store.load(request["id"])
        if "entry" in request:
            below = needs(store.load(request["on"])) if request.get("on") else set()
            state["entry"] = size(store, needs(state) - below)
        for entry in state["mounts"]:
            entry["base"], entry["delta"] = len(entry["chain"]), {}
        repository = {"tracked": request.get("tracked"), "exclude": request.get("exclude", "")}
        name = hashed(repository)
        state.update(id=request.get("entry") or new_id(), base=state["digest"], repository=name)
        state["digest"] = digest_of(state)
        with store.locked():
            store.write(store.at("repositories", name + ".json"), json.dumps(repository))
            return store.save(state), b""

    # -- leases

    def lease(self, request: Json) -> None:
        """Serve a fork in its own process until that ends, then freeze or discard the fork's changes."""
        store = self._area(request)
        state = self.state_to_fork(store, request)
        folder = self._new_fork_dir(store)
        holder = os.fork()
        if holder == 0:
            Lease(
                store, state, request, folder, self.config, self.template if request.get("template") else None
            ).serve()
        code = self.wait(holder)
        try:
            if code == FREEZE:
                check_frozen(os.path.join(folder, "upper"), request["disk_bytes"])
                reply(freeze(store, state, folder, self._bases(request)))
            elif code != OVER:
                raise Refused("lost", "the process that held the fork died (%d)" % code)
        finally:
            self.throw_away(folder)

    def start_template(self, request: Json, program: bytes) -> None:
        """Start a template in a fork of a state. It replaces the previous template, which ends when its last connection
        is closed."""
        if self.template:
            self.template.end()
        store = self._area(request)
        state = store.load(request["id"])
        lease = Lease(store, state, request, self._new_fork_dir(store), self.config)
        env = {**state["env"], **request["env"]}
        self.template = Template(lease.enter, request["argv"], env, state["workdir"], program, OWN_PIDS[0])

    def _new_fork_dir(self, store: Store) -> str:
        """Make a directory for one fork."""
        self.count += 1
        folder = store.at("leases", self.name, str(self.count))
        os.mkdir(folder)
        return folder

    def state_to_fork(self, store: Store, request: Json) -> Json:
        """Load the state to fork: `outside` if the request names one, else `id`."""
        state = store.load(request["id"])
        if request.get("outside"):
            outside = store.load(request["outside"])
            if (state["base"], state["workdir"]) != (outside["base"], outside["workdir"]):
                raise Refused("sandbox", "%s and %s do not come from one base" % (state["id"], outside["id"]))
            state = outside
        return state

    def wait(self, holder: int) -> int:
        """Wait for one child and reap orphans meanwhile; return the child's exit code."""
        while True:
            child, status = os.wait()
            if child == holder:
                return exit_code(status)


def start_remover() -> int:
    """Start a process that removes directories in the background. Write their paths, each followed by a NUL, to the
    returned pipe. A later guest removes the directories that are left when this process ends."""
    source, sink = os.pipe()
    if os.fork():
        os.close(source)
        return sink
    os.close(sink)
    os.dup2(source, 0)
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
    rest = b""
    while True:
        data = os.read(0, 1 << 16)
        if not data:
            os._exit(0)
        *paths, rest = (rest + data).split(b"\0")
        for path in paths:
            remove_tree(os.fsdecode(path))
