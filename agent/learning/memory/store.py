"""The file that memory is kept in: one SQLite database, which several processes may read and write at once.

Laws: a run is remembered whole or not at all; what no run stands behind any more is gone. The index of words is our
own, so that identifiers are found by their parts, on whatever SQLite there is.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from agent.errors import MemoryUnusable
from agent.learning.memory.items import Experience, Insight, Item, Kind, Source, load, load_source, to_json
from agent.learning.memory.ranking import Corpus
from agent.learning.memory.words import words
from agent.parsing import loads

__all__ = ["Store"]

SCHEMA = 1
APPLICATION = 0x52414D46
"""`RAMF`: marks a database as ours."""
WAIT_S = 30.0
"""How long a writer waits for another."""
QUERY_WORDS = 400
"""So many different words of a query are looked up, the first ones."""

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
    """A memory file. Safe with several threads and processes: every call opens it and closes it again."""

    def __init__(self, path: Path, *, make: bool = True) -> None:
        """`make`: it is made where there is none.

        Raises:
            MemoryUnusable: there is none, it is no memory, or a newer version of ramify wrote it.
        """
        self.path = path
        if not make and not path.is_file():
            raise MemoryUnusable(f"there is no memory at {path}; make one: ramify memory add RUN --memory {path}")
        with self._reading() as db:
            made, shared = _is_made(db, path), _is_shared(db)
        if not shared:
            with self._open() as db:
                _share(db)
        if not made:
            with self._writing() as db:
                _prepare(db, path)

    def remember(
        self, source: Source, items: Iterable[Item], learn: Callable[[list[Insight]], list[Insight]] | None = None
    ) -> None:
        """Take a run and its items in, in the place of what was known of it before; `learn` says what all insights are
        then. Whole or not at all."""
        with self._writing() as db:
            _forget(db, [source.id])
            _put_source(db, source)
            for item in items:
                _put(db, item)
            if learn is not None:
                _replace_insights(db, learn)

    def revise(self, learn: Callable[[list[Insight]], list[Insight]], sources: Iterable[Source] = ()) -> None:
        """Replace all insights by what `learn` makes of them, at once; `sources` are the runs that these may come from
        beside those that are known."""
        with self._writing() as db:
            for source in sources:
                _put_source(db, source)
            _replace_insights(db, learn)

    def sources(self) -> dict[str, Source]:
        """All runs that are remembered, by id, the oldest first."""
        with self._reading() as db:
            rows = db.execute("SELECT id, body FROM sources ORDER BY added, id").fetchall()
        return {name: load_source(loads(body)) for name, body in rows}

    def named_sources(self, names: Iterable[str]) -> list[Source]:
        """Those of the runs that are remembered, in this order."""
        with self._reading() as db:
            rows = [db.execute("SELECT body FROM sources WHERE id = ?", (name,)).fetchone() for name in names]
        return [load_source(loads(row[0])) for row in rows if row]

    def items(self, kind: Kind | None = None) -> list[Item]:
        """All that is remembered, in the order of ids."""
        with self._reading() as db:
            rows = db.execute(
                "SELECT id, body FROM items WHERE ?1 IS NULL OR kind = ?1 ORDER BY id", (kind,)
            ).fetchall()
            return [_load(db, *row) for row in rows]

    def items_of(self, source: str) -> list[Item]:
        """What a run stands behind, alone or with others, in the order of ids."""
        query = "SELECT id, body FROM items WHERE id IN (SELECT item FROM origins WHERE source = ?) ORDER BY id"
        with self._reading() as db:
            return [_load(db, *row) for row in db.execute(query, (source,)).fetchall()]

    def get(self, names: Sequence[str]) -> list[Item]:
        """Those of the items that there are, in this order."""
        with self._reading() as db:
            return list(_get(db, names))

    def of_clusters(self, clusters: Sequence[str]) -> list[Experience]:
        """The experiences with errors of these clusters, in the order of ids."""
        marks = ", ".join("?" * len(clusters))
        with self._reading() as db:
            query = f"SELECT id, body FROM items WHERE cluster IN ({marks}) AND cluster != '' ORDER BY id"  # noqa: S608
            found = [_load(db, *row) for row in db.execute(query, tuple(clusters)).fetchall()]
        return [item for item in found if isinstance(item, Experience)]

    def corpus(self, kind: Kind, text: str) -> Corpus:
        """How often the words of a text are in the items of a kind, for ranking them. The cross join has SQLite begin
        with the words, of which there are few, and not with the items."""
        wanted = list(dict.fromkeys(words(text)))[:QUERY_WORDS]
        marks = ", ".join("?" * len(wanted))
        with self._reading() as db:
            total, length = db.execute("SELECT count(*), total(length) FROM items WHERE kind = ?", (kind,)).fetchone()
            rows = db.execute(
                "SELECT postings.term, items.id, postings.count, items.length FROM postings "  # noqa: S608  # only marks
                f"CROSS JOIN items ON items.id = postings.item WHERE postings.term IN ({marks}) AND items.kind = ?",
                (*wanted, kind),
            ).fetchall()
        return Corpus(total, length / total if total else 0.0, rows)

    def drop(self, names: Sequence[str]) -> int:
        """Remove items; how many there were."""
        with self._writing() as db:
            return _changed(db, "items", names)

    def forget(self, sources: Sequence[str]) -> int:
        """Remove runs and what only they stand behind; how many runs there were."""
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
            remedy = "try again when the other process has done" if _is_busy(error) else "name another file"
            raise MemoryUnusable(f"the memory {self.path} cannot be used: {error}; {remedy}") from error


def _is_busy(error: sqlite3.Error) -> bool:
    """Whether another process has the file in hand."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF == sqlite3.SQLITE_BUSY


def _is_shared(db: sqlite3.Connection) -> bool:
    return bool(db.execute("PRAGMA journal_mode").fetchone()[0] == "wal")


def _share(db: sqlite3.Connection) -> None:
    """Have reading and writing not wait for each other, from now on: SQLite keeps this in the file. Where another
    process has the file in hand, SQLite does not wait; then that process does it, or who opens it next."""
    try:
        db.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        if not _is_busy(error):
            raise


def _is_made(db: sqlite3.Connection, path: Path) -> bool:
    """Whether there is a memory in the file; it is only read.

    Raises:
        MemoryUnusable: it is something else, or a newer version of ramify wrote it.
    """
    (version,), (application,) = (
        db.execute(f"PRAGMA {name}").fetchone() for name in ("user_version", "application_id")
    )
    tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and application != APPLICATION:
        raise MemoryUnusable(f"{path} is a database, but no memory of ramify; name another file")
    if version > SCHEMA:
        raise MemoryUnusable(
            f"the memory {path} has schema {version}, and this version of ramify knows {SCHEMA}: upgrade ramify, or "
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
    """A run that is known stays as it is."""
    row = (source.id, source.directory, source.added, to_json(source))
    db.execute("INSERT OR IGNORE INTO sources VALUES (?, ?, ?, ?)", row)


def _put(db: sqlite3.Connection, item: Item) -> None:
    found = Counter(words(item.searched))
    cluster = item.cluster if isinstance(item, Experience) else ""
    db.execute("DELETE FROM items WHERE id = ?", (item.id,))
    row = (item.id, item.kind, cluster, found.total(), to_json(item))
    db.execute("INSERT INTO items VALUES (?, ?, ?, ?, ?)", row)
    db.executemany("INSERT INTO postings VALUES (?, ?, ?)", [(word, item.id, n) for word, n in found.items()])
    db.executemany("INSERT INTO origins VALUES (?, ?)", [(item.id, source) for source in item.sources])


def _replace_insights(db: sqlite3.Connection, learn: Callable[[list[Insight]], list[Insight]]) -> None:
    rows = db.execute("SELECT id, body FROM items WHERE kind = 'insight' ORDER BY id").fetchall()
    old = [item for item in (_load(db, *row) for row in rows) if isinstance(item, Insight)]
    new, before = learn(old), frozenset(old)
    _changed(db, "items", [each.id for each in before.difference(new)])
    for each in new:
        if each not in before:
            _put(db, each)


def _load(db: sqlite3.Connection, name: str, body: str) -> Item:
    """An item, with the runs that stand behind it now."""
    rows = db.execute("SELECT source FROM origins WHERE item = ? ORDER BY source", (name,)).fetchall()
    return load(loads(body) | {"sources": [source for (source,) in rows]})


def _get(db: sqlite3.Connection, names: Sequence[str]) -> Iterator[Item]:
    for name in names:
        for row in db.execute("SELECT id, body FROM items WHERE id = ?", (name,)).fetchall():
            yield _load(db, *row)


def _forget(db: sqlite3.Connection, sources: Sequence[str]) -> int:
    gone = _changed(db, "sources", sources)
    db.execute("DELETE FROM items WHERE id NOT IN (SELECT item FROM origins)")
    return gone


def _changed(db: sqlite3.Connection, table: str, names: Sequence[str]) -> int:
    """Delete rows by id; how many there were."""
    return sum(db.execute(f"DELETE FROM {table} WHERE id = ?", (name,)).rowcount for name in names)  # noqa: S608
