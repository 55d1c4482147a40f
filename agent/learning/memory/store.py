"""The memory file: one SQLite database that several processes may read and write at once.

Invariants: a run is remembered whole or not at all; an item is deleted with its last source. Ramify has its own word
index, so that identifiers are found by their parts, with any version of SQLite.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from agent.errors import MemoryUnusable, UsageError
from agent.learning.memory.items import Experience, Insight, Item, Kind, Source, load, load_source, to_json
from agent.learning.memory.ranking import Corpus
from agent.learning.memory.words import words
from agent.parsing import loads

SCHEMA = 1
APPLICATION = 0x52414D46
"""`RAMF`: marks a database as a memory of Ramify."""
WAIT_S = 30.0
"""How long a writer waits for another."""
QUERY_WORDS = 400
"""The maximum number of different words of a query that are looked up, from its beginning."""

_TABLES = """
CREATE TABLE sources (id TEXT PRIMARY KEY, directory TEXT NOT NULL, added TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE items (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, cluster TEXT NOT NULL, length INTEGER NOT NULL, body TEXT NOT NULL
);
CREATE INDEX items_kind ON items (kind);
CREATE INDEX items_cluster ON items (cluster);
CREATE TABLE origins (
    item TEXT NOT NULL REFERENCES items ON DELETE CASCADE,
    source TEXT NOT NULL REFERENCES sources ON DELETE CASCADE,
    PRIMARY KEY (item, source)
) WITHOUT ROWID;
CREATE INDEX origins_source ON origins (source);
CREATE TABLE postings (
    term TEXT NOT NULL, item TEXT NOT NULL REFERENCES items ON DELETE CASCADE, count INTEGER NOT NULL,
    PRIMARY KEY (term, item)
) WITHOUT ROWID;
CREATE INDEX postings_item ON postings (item);
"""


class Store:
    """A memory file. Safe with several threads and processes: every call opens and closes it."""

    def __init__(self, path: Path, *, make: bool = True) -> None:
        """`make`: create the file if it does not exist.

        Raises:
            UsageError: the file does not exist.
            MemoryUnusable: it is not a memory, or is from a newer version of ramify.
        """
        self.path = path
        if not make and not path.is_file():
            raise UsageError(f"there is no memory at {path}; create one: ramify memory add RUN --memory {path}")
        with self._reading() as db:
            made, shared = _is_made(db, path), _is_shared(db)
        if not shared:
            with self._open() as db:
                _share(db)
        if not made:
            with self._writing() as db:
                _prepare(db, path)

    def remember(self, source: Source, items: Iterable[Item], learn: Callable[[list[Insight]], list[Insight]]) -> None:
        """Store a run and its items, replacing what was stored of it before; `learn` maps the old insights to the new
        ones. The change is atomic."""
        with self._writing() as db:
            _forget(db, [source.id])
            _put_source(db, source)
            for item in items:
                _put(db, item)
            _replace_insights(db, learn)

    def revise(self, learn: Callable[[list[Insight]], list[Insight]], sources: Iterable[Source] = ()) -> None:
        """Replace all insights by the result of `learn`, atomically; `sources` are further runs that they may cite."""
        with self._writing() as db:
            for source in sources:
                _put_source(db, source)
            _replace_insights(db, learn)

    def sources(self) -> dict[str, Source]:
        """All remembered runs by id, the oldest first."""
        with self._reading() as db:
            rows = db.execute("SELECT id, body FROM sources ORDER BY added, id").fetchall()
        return {name: load_source(loads(body)) for name, body in rows}

    def named_sources(self, names: Iterable[str]) -> list[Source]:
        """The named runs that are remembered, in this order."""
        with self._reading() as db:
            rows = [db.execute("SELECT body FROM sources WHERE id = ?", (name,)).fetchone() for name in names]
        return [load_source(loads(row[0])) for row in rows if row]

    def items(self, kind: Kind | None = None) -> list[Item]:
        """All items, or those of a kind, by id."""
        with self._reading() as db:
            rows = db.execute(
                "SELECT id, body FROM items WHERE ?1 IS NULL OR kind = ?1 ORDER BY id", (kind,)
            ).fetchall()
            return [_load(db, *row) for row in rows]

    def items_of(self, source: str) -> list[Item]:
        """The items of a run, including those it shares with others, by id."""
        query = "SELECT id, body FROM items WHERE id IN (SELECT item FROM origins WHERE source = ?) ORDER BY id"
        with self._reading() as db:
            return [_load(db, *row) for row in db.execute(query, (source,)).fetchall()]

    def get(self, names: Sequence[str]) -> list[Item]:
        """The named items that exist, in this order."""
        with self._reading() as db:
            rows = [db.execute("SELECT id, body FROM items WHERE id = ?", (name,)).fetchone() for name in names]
            return [_load(db, *row) for row in rows if row]

    def of_clusters(self, clusters: Sequence[str]) -> list[Experience]:
        """The experiences with errors of these clusters, by id."""
        marks = ", ".join("?" * len(clusters))
        with self._reading() as db:
            query = f"SELECT id, body FROM items WHERE cluster IN ({marks}) AND cluster != '' ORDER BY id"  # noqa: S608
            items = [_load(db, *row) for row in db.execute(query, tuple(clusters)).fetchall()]
        return [item for item in items if isinstance(item, Experience)]

    def corpus(self, kind: Kind, text: str) -> Corpus:
        """How often the words of a text occur in the items of a kind, for ranking. The cross join makes SQLite start
        with the words, which are few, and not with the items."""
        query = list(dict.fromkeys(words(text)))[:QUERY_WORDS]
        marks = ", ".join("?" * len(query))
        with self._reading() as db:
            total, length = db.execute("SELECT count(*), total(length) FROM items WHERE kind = ?", (kind,)).fetchone()
            rows = db.execute(
                "SELECT postings.term, items.id, postings.count, items.length FROM postings "  # noqa: S608  # only marks
                f"CROSS JOIN items ON items.id = postings.item WHERE postings.term IN ({marks}) AND items.kind = ?",
                (*query, kind),
            ).fetchall()
        return Corpus(total, length / total if total else 0.0, rows)

    def drop(self, names: Sequence[str]) -> int:
        """Remove items and return how many existed."""
        with self._writing() as db:
            return _deleted(db, "items", names)

    def forget(self, sources: Sequence[str]) -> int:
        """Remove runs and the items that have no other source; returns how many of the runs existed."""
        with self._writing() as db:
            return _forget(db, sources)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._open() as db:
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._open() as db:
            db.execute("BEGIN")
            yield db

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=WAIT_S, isolation_level=None)) as db:
                db.execute("PRAGMA foreign_keys = ON")
                yield db
        except sqlite3.Error as error:
            remedy = "try again when the other process has finished" if _is_busy(error) else "name another file"
            raise MemoryUnusable(f"the memory {self.path} cannot be used: {error}; {remedy}") from error


def _is_busy(error: sqlite3.Error) -> bool:
    """Whether another process has locked the file."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF == sqlite3.SQLITE_BUSY


def _is_shared(db: sqlite3.Connection) -> bool:
    return bool(db.execute("PRAGMA journal_mode").fetchone()[0] == "wal")


def _share(db: sqlite3.Connection) -> None:
    """Turn on WAL, so that readers and writers do not wait for each other; the file remembers it. If another process
    has locked the file, that process or the next one to open it does this."""
    try:
        db.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        if not _is_busy(error):
            raise


def _is_made(db: sqlite3.Connection, path: Path) -> bool:
    """Whether the file holds a memory; it is only read.

    Raises:
        MemoryUnusable: the file holds something else, or is from a newer version of ramify.
    """
    (version,), (application,) = (
        db.execute(f"PRAGMA {name}").fetchone() for name in ("user_version", "application_id")
    )
    tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and application != APPLICATION:
        raise MemoryUnusable(f"{path} is a database, but not a memory of ramify; name another file")
    if version > SCHEMA:
        raise MemoryUnusable(
            f"the memory {path} has schema {version}, and this version of ramify reads {SCHEMA}: upgrade ramify, or "
            "name another file"
        )
    return bool(tables)


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    if not _is_made(db, path):
        for statement in filter(str.strip, _TABLES.split(";")):
            db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute(f"PRAGMA user_version = {SCHEMA}")


def _put_source(db: sqlite3.Connection, source: Source) -> None:
    """Store a run, unless it is stored already."""
    row = (source.id, source.directory, source.added, to_json(source))
    db.execute("INSERT OR IGNORE INTO sources VALUES (?, ?, ?, ?)", row)


def _put(db: sqlite3.Connection, item: Item) -> None:
    counts = Counter(words(item.searched))
    cluster = item.cluster if isinstance(item, Experience) else ""
    db.execute("DELETE FROM items WHERE id = ?", (item.id,))
    row = (item.id, item.kind, cluster, counts.total(), to_json(item))
    db.execute("INSERT INTO items VALUES (?, ?, ?, ?, ?)", row)
    db.executemany("INSERT INTO postings VALUES (?, ?, ?)", [(word, item.id, n) for word, n in counts.items()])
    db.executemany("INSERT INTO origins VALUES (?, ?)", [(item.id, source) for source in item.sources])


def _replace_insights(db: sqlite3.Connection, learn: Callable[[list[Insight]], list[Insight]]) -> None:
    rows = db.execute("SELECT id, body FROM items WHERE kind = 'insight' ORDER BY id").fetchall()
    old = [item for item in (_load(db, *row) for row in rows) if isinstance(item, Insight)]
    new, before = learn(old), frozenset(old)
    _deleted(db, "items", [insight.id for insight in before.difference(new)])
    for insight in new:
        if insight not in before:
            _put(db, insight)


def _load(db: sqlite3.Connection, name: str, body: str) -> Item:
    rows = db.execute("SELECT source FROM origins WHERE item = ? ORDER BY source", (name,)).fetchall()
    return load(loads(body) | {"sources": [source for (source,) in rows]})


def _forget(db: sqlite3.Connection, sources: Sequence[str]) -> int:
    count = _deleted(db, "sources", sources)
    db.execute("DELETE FROM items WHERE id NOT IN (SELECT item FROM origins)")
    return count


def _deleted(db: sqlite3.Connection, table: str, names: Sequence[str]) -> int:
    return sum(db.execute(f"DELETE FROM {table} WHERE id = ?", (name,)).rowcount for name in names)  # noqa: S608
