"""What was measured, kept in a database (SQLite): by program, machine and schedule.

Several processes may use one file at once: each trial is claimed before it is measured and committed when it is done.
What cannot be read is skipped; where the file cannot be written any more (a full disk), records go on in memory.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import json
import math
import os
import sqlite3
import sys
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from ..canonical import Canonical
from ..errors import TirError
from .record import FORMAT, STATES, Record, digest, split_decisions, with_decisions
from .runner import Measurement

BUSY_SECONDS = 30.0  # to wait for other processes that write
NO_RUN = 1 << 62  # after every run
STALE_SECONDS = 3600.0  # after which a claim is void, whoever made it

T = TypeVar("T")

_SCHEMA = (
    "CREATE TABLE workload(id INTEGER PRIMARY KEY, key TEXT UNIQUE, family TEXT, script TEXT, sizes TEXT)",
    "CREATE TABLE machine(id INTEGER PRIMARY KEY, key TEXT UNIQUE, about TEXT)",
    """CREATE TABLE sketch(id INTEGER PRIMARY KEY, workload INTEGER REFERENCES workload, key TEXT, trace TEXT,
  rules TEXT, UNIQUE(workload, key))""",
    "CREATE TABLE run(id INTEGER PRIMARY KEY, started TEXT, seed INTEGER, options TEXT, versions TEXT, host TEXT)",
    f"""CREATE TABLE trial(id INTEGER PRIMARY KEY, workload INTEGER, machine INTEGER, sketch INTEGER, run INTEGER,
  number INTEGER, decisions TEXT, predicted REAL, status TEXT CHECK(status IN ({", ".join(f"'{s}'" for s in STATES)})),
  best REAL, times TEXT, error TEXT, build_s REAL, load REAL, owner TEXT, made TEXT,
  UNIQUE(workload, machine, sketch, decisions))""",
    "CREATE INDEX best ON trial(workload, machine, status, best)",
    "CREATE INDEX families ON workload(family)",
    f"PRAGMA user_version={FORMAT}",
)
# What a runner answered, in the batches of each run: files of earlier versions get the table when they are opened.
_ANSWERS = """CREATE TABLE IF NOT EXISTS answer(run INTEGER, task TEXT, batch INTEGER, trace TEXT, status TEXT, seconds REAL,
  error TEXT, PRIMARY KEY(run, task, batch, trace))"""


def process_name() -> str:
    """This process on this machine since its start, for claims: host, boot, process."""
    return f"{os.uname().nodename if hasattr(os, 'uname') else ''}:{_boot()}:{os.getpid()}"


@functools.cache
def _boot() -> str:
    """The boot of this machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _is_gone(owner: str) -> bool:
    """Whether the process of a claim has ended. Of another host it is not known."""
    host, boot, pid = owner.rsplit(":", 2) if owner.count(":") >= 2 else ("", "", "")
    mine = process_name().rsplit(":", 2)
    if host != mine[0]:
        return False
    if boot != mine[1]:
        return True
    if os.name == "nt":  # there, any signal ends a process
        return False
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError):
        return True
    except OSError:
        return False
    return False


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


class Records:
    """The database of ``path``; without one, in memory.

    >>> records = Records(None)
    >>> records.count()
    0
    """

    def __init__(self, path: str | os.PathLike[str] | None):
        self.path = None if path is None else Path(path)
        self.damaged = 0  # rows that could not be read
        try:
            self._database = self._opened()
        except sqlite3.OperationalError as error:
            if not _is_full(error):
                raise TirError(f"{self.path} is no database of records: {error}") from None
            self._warn(error)
            self.path = None
            self._database = self._opened()
        except (sqlite3.Error, ValueError) as error:  # ValueError: a path that is none
            raise TirError(f"{self.path} is no database of records: {error}") from None

    # ------------------------------------------------------------ the file

    def _opened(self) -> sqlite3.Connection:
        """The database, made if there is none. Raises ``TirError`` for one of another format, or of something else."""
        where = ":memory:" if self.path is None else str(self.path)
        found = sqlite3.connect(where, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        found.text_factory = lambda text: text.decode(
            errors="surrogateescape"
        )  # one such text is no record, others are
        is_empty = found.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0] == 0
        if not is_empty:
            self._check(found)
        if self.path is not None:
            _set_journal(found, "DELETE" if on_network(self.path) else "WAL")
            found.execute("PRAGMA synchronous=NORMAL")
        if is_empty:
            with _transaction(found):
                if found.execute("PRAGMA user_version").fetchone()[0] == 0:  # no other process was faster
                    for statement in _SCHEMA:
                        found.execute(statement)
        found.execute(_ANSWERS)
        return found

    def _check(self, found: sqlite3.Connection) -> None:
        """Raise ``TirError`` if these are not records that can be read."""
        version = found.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, FORMAT):
            raise TirError(f"{self.path} has records of format {version}; this version of tir reads {FORMAT}")
        try:
            found.execute(f"SELECT {self._COLUMNS} LIMIT 0")
        except sqlite3.OperationalError as error:
            if "no such" not in str(error):
                raise
            raise TirError(f"{self.path} is a database of something else: {error}") from None

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Records:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """``change(database)`` as one transaction; where the file takes no more, on a copy in memory."""
        try:
            with _transaction(self._database):
                return change(self._database)
        except sqlite3.DatabaseError as error:
            if self.path is None or isinstance(error, sqlite3.ProgrammingError):  # of a value, not of the file
                raise
            self._warn(error)
            self._to_memory()
            with _transaction(self._database):
                return change(self._database)

    def _warn(self, error: Exception) -> None:
        warnings.warn(
            f"{self.path} takes no more records ({error}): the search goes on, what it measures from here on is lost "
            "when it ends",
            RuntimeWarning,
            stacklevel=4,
        )

    def _to_memory(self) -> None:
        """Go on with a copy in memory of what can still be read."""
        old, self.path = self._database, None
        self._database = self._opened()
        with contextlib.suppress(sqlite3.Error):
            for table in ("workload", "machine", "sketch", "run", "trial", "answer"):
                for row in old.execute(f"SELECT * FROM {table}"):
                    marks = ",".join("?" * len(row))
                    with contextlib.suppress(sqlite3.Error):
                        self._database.execute(f"INSERT INTO {table} VALUES ({marks})", row)
        with contextlib.suppress(sqlite3.Error):
            old.close()

    # ------------------------------------------------------------ writing

    def _id(self, database: sqlite3.Connection, table: str, key: str, **columns: Any) -> int:
        """The number of a row of ``table``, which is made if there is none."""
        names, values = list(columns), list(columns.values())
        given = {"key": key, **{n: v for n, v in columns.items() if n == "workload"}}
        where = " AND ".join(f"{n}=?" for n in given)
        found = database.execute(f"SELECT id FROM {table} WHERE {where}", list(given.values())).fetchone()
        if found is not None:
            return int(found[0])
        marks = ",".join("?" * (len(values) + 1))
        made = database.execute(f"INSERT INTO {table}(key,{','.join(names)}) VALUES ({marks})", [key, *values])
        return int(made.lastrowid or 0)

    def begin_run(self, seed: int, options: Mapping[str, Any]) -> int:
        """The number of a new run."""
        from .. import __version__

        versions = json.dumps({"tir": __version__, "python": sys.version.split()[0], "llvmlite": _version("llvmlite")})
        row = (_now(), seed, json.dumps(options, default=str), versions, process_name().split(":")[0])
        text = "INSERT INTO run(started,seed,options,versions,host) VALUES (?,?,?,?,?)"
        return int(self._write(lambda db: db.execute(text, row).lastrowid) or 0)

    def runs(self) -> list[tuple[int, str, int, int]]:
        """Runs that can be replayed: number, when it began, seed, and how many answers of a runner there are."""
        text = "SELECT r.id, r.started, r.seed, COUNT(*) FROM run r JOIN answer a ON a.run = r.id GROUP BY r.id"
        return list(self._rows(text, (), lambda n, started, seed, count: (n, _as(str, started), _as(int, seed), count)))

    def begun(self, run: int) -> tuple[int, bool]:
        """The seed of a run, and whether it was ``fresh``. Raises ``TirError`` for one of which nothing is there to be replayed.

        >>> Records(None).begun(3)
        Traceback (most recent call last):
        tir.errors.TirError: no run 3 to replay; there is none
        """
        known = {number: seed for number, _, seed, _ in self.runs()}
        if run not in known:
            raise TirError(f"no run {run} to replay; there is {', '.join(map(str, known)) or 'none'}")
        options = list(self._rows("SELECT options FROM run WHERE id=?", (run,), _object))
        if not options:
            raise TirError(f"run {run} cannot be replayed: its options cannot be read")
        return known[run], bool(options[0].get("fresh"))

    def note(
        self, run: int, program: Canonical, machine: str, sizes: Mapping[str, int], batch: int,
        answers: Iterable[tuple[str, Measurement]],
    ) -> None:  # fmt: skip
        """Write down what a runner answered in a batch, by digests of traces: see :meth:`answers`."""
        task = _task(program, machine, sizes)
        rows = [
            (run, task, batch, trace, made.status, made.seconds if math.isfinite(made.seconds) else None, made.error)
            for trace, made in answers
        ]
        self._write(lambda db: db.executemany("INSERT OR REPLACE INTO answer VALUES (?,?,?,?,?,?,?)", rows))

    def answers(
        self, run: int, program: Canonical, machine: str, sizes: Mapping[str, int]
    ) -> dict[tuple[int, str], Measurement]:
        """What a runner answered in a run, by the number of the batch and the digest of the trace."""
        text = "SELECT batch, trace, status, seconds, error FROM answer WHERE run=? AND task=?"

        def answer(
            batch: Any, trace: Any, status: Any, seconds: Any, error: Any
        ) -> tuple[tuple[int, str], Measurement]:
            times = () if seconds is None else (float(seconds),)
            if status not in STATES or not isinstance(error or "", str):
                raise ValueError(f"no answer of a runner: {status!r}, {error!r}")
            made = Measurement(-1, status, min(times, default=math.inf), times, error or "")
            return (_as(int, batch), _as(str, trace)), made

        return dict(self._rows(text, (run, _task(program, machine, sizes)), answer))

    def add_machine(self, key: str, about: Mapping[str, Any]) -> None:
        """Say what the machine of a key is."""
        self._write(lambda db: self._id(db, "machine", key, about=json.dumps(about, default=str)))

    def _places(
        self,
        db: sqlite3.Connection,
        program: Canonical,
        machine: str,
        trace: list[Any],
        rules: Iterable[str],
        sizes: Mapping[str, int],
    ) -> tuple[int, int, int, str]:
        sketch, decisions = split_decisions(trace)
        key = workload_key(program.key, sizes)
        script = program.mod.script()
        workload = self._id(db, "workload", key, family=program.family, script=script, sizes=json.dumps(dict(sizes)))
        where = self._id(db, "machine", machine, about="{}")
        text, named = json.dumps(sketch), json.dumps(list(rules))
        one = self._id(db, "sketch", digest(sketch), workload=workload, trace=text, rules=named)
        return workload, where, one, json.dumps(decisions)

    def claim(
        self,
        program: Canonical,
        machine: str,
        trace: list[Any],
        *,
        run: int = 0,
        number: int = 0,
        predicted: float | None = None,
        rules: Iterable[str] = (),
        sizes: Mapping[str, int] | None = None,
        again: bool = False,
    ) -> int | None:
        """The number of a trial that is now this process's to measure; None if it has been measured (unless it is to be
        ``again``), or another process that is alive has claimed it."""

        def change(db: sqlite3.Connection) -> int | None:
            at = self._places(db, program, machine, trace, rules, sizes or {})
            found = db.execute(
                "SELECT id, status, owner, made FROM trial WHERE workload=? AND machine=? AND sketch=? AND decisions=?",
                at,
            ).fetchone()
            if found is not None:
                void = _is_gone(found[2] or "") or _is_old(found[3] or "") if found[1] == "claimed" else again
                if not void:
                    return None
                db.execute("DELETE FROM trial WHERE id=?", found[:1])
            row = (*at, run, number, predicted, process_name(), _now())
            text = "INSERT INTO trial(workload,machine,sketch,decisions,run,number,predicted,owner,made,status)"
            return int(db.execute(f"{text} VALUES (?,?,?,?,?,?,?,?,?,'claimed')", row).lastrowid or 0)

        return self._write(change)

    def finish(self, trial: int, made: Measurement) -> None:
        """The result of a claimed trial: one commit."""
        best = made.seconds if math.isfinite(made.seconds) else None
        row = (made.status, best, json.dumps(made.times), made.error, made.build_seconds, made.load, _now(), trial)
        text = "UPDATE trial SET status=?, best=?, times=?, error=?, build_s=?, load=?, made=?, owner=NULL WHERE id=?"
        self._write(lambda db: db.execute(text, row))

    def release(self, trials: Iterable[int]) -> None:
        """Give up claims that were not measured."""
        for trial in trials:
            self._write(lambda db, n=trial: db.execute("DELETE FROM trial WHERE id=? AND status='claimed'", (n,)))

    def add(self, record: Record, program: Canonical) -> bool:
        """Add a record, as from another file; false if there is one of that schedule."""
        trial = self.claim(
            program,
            record.machine,
            record.trace,
            predicted=record.predicted,
            rules=record.rules,
            sizes=record.sizes,
            number=record.number,
        )
        if trial is None:
            return False
        self.finish(trial, record.measurement)
        return True

    # ------------------------------------------------------------ reading

    _COLUMNS = """w.key, w.family, w.script, m.key, s.trace, t.decisions, t.status, t.best, t.times, t.predicted, t.error,
        s.rules, w.sizes, t.number, t.made, t.load, t.build_s
        FROM trial t JOIN workload w ON w.id = t.workload JOIN machine m ON m.id = t.machine
        JOIN sketch s ON s.id = t.sketch"""

    def _select(self, where: str, values: Iterable[Any]) -> Iterator[Record]:
        return self._rows(f"SELECT {self._COLUMNS} {where}", values, _record)

    def _rows(self, text: str, values: Iterable[Any], read: Callable[..., T]) -> Iterator[T]:
        """What ``read`` makes of the columns of each row; rows of which it makes nothing are left out and counted."""
        try:
            rows = self._database.execute(text, list(values)).fetchall()
        except sqlite3.DatabaseError as error:
            self.damaged += 1
            warnings.warn(
                f"{self.path} is damaged ({error}); what cannot be read is left out", RuntimeWarning, stacklevel=3
            )
            return
        for row in rows:
            try:
                made = read(*row)
            except _UNREADABLE:
                self.damaged += 1
            else:
                yield made

    def of(
        self, program: Canonical, machine: str, sizes: Mapping[str, int] | None = None, before: int = NO_RUN
    ) -> list[Record]:
        """The trials of a program on a machine that are done, of runs ``before`` one, in the order in which they were
        claimed."""
        where = "WHERE w.key=? AND m.key=? AND t.status <> 'claimed' AND t.run < ? ORDER BY t.id"
        return list(self._select(where, (workload_key(program.key, sizes or {}), machine, before)))

    def best(
        self, program: Canonical, machine: str, sizes: Mapping[str, int] | None = None, count: int = 1
    ) -> list[Record]:
        """The fastest trials of a program on a machine."""
        values = (workload_key(program.key, sizes or {}), machine, count)
        return list(self._select("WHERE w.key=? AND m.key=? AND t.status='ok' ORDER BY t.best LIMIT ?", values))

    def family(self, program: Canonical, each: int = 2, before: int = NO_RUN) -> list[Record]:
        """The fastest trials of other sizes of a program, and of it on other machines, of runs ``before`` one: ``each`` of
        every size, the best of every size before the second best of any."""
        better = """(SELECT COUNT(*) FROM trial b WHERE b.workload = t.workload AND b.machine = t.machine
            AND b.status='ok' AND b.run < ?3 AND (b.best < t.best OR b.best = t.best AND b.id < t.id))"""
        where = f"WHERE w.family=?1 AND t.status='ok' AND t.run < ?3 AND {better} < ?2 ORDER BY {better}, t.id"
        return list(self._select(where, (program.family, each, before)))

    def all(self) -> Iterator[Record]:
        """Every trial that is done."""
        return self._select("WHERE t.status <> 'claimed' ORDER BY t.id", ())

    def claimed(self, program: Canonical, machine: str, sizes: Mapping[str, int]) -> int:
        """How many trials of a program on a machine are being measured by processes that are alive."""
        text = """SELECT t.owner, t.made FROM trial t JOIN workload w ON w.id = t.workload JOIN machine m ON m.id = t.machine
            WHERE w.key=? AND m.key=? AND t.status='claimed'"""
        values = (workload_key(program.key, sizes), machine)
        return sum(self._rows(text, values, lambda owner, made: not (_is_gone(owner) or _is_old(made))))

    def count(self) -> int:
        """How many trials there are, claimed ones too."""
        return int(self._database.execute("SELECT COUNT(*) FROM trial").fetchone()[0])

    def machines(self) -> dict[str, dict[str, Any]]:
        """What is known of each machine, by its key."""
        text = "SELECT key, about FROM machine"
        return dict(self._rows(text, (), lambda key, about: (_as(str, key), _object(about))))

    def is_whole(self) -> bool:
        """SQLite's own check of the file."""
        return self._database.execute("PRAGMA integrity_check").fetchone()[0] == "ok"

    def prune(self, keep: int = 20, misses: int = 5) -> int:
        """Delete all but the ``keep`` best trials of each program and machine, and the ``misses`` that the model
        predicted worst; void claims too, and what runs can be replayed from. Returns how many trials are gone."""
        order = "ABS(LN(MAX(predicted, 1e-12) / best))" if self._has_ln() else "ABS(predicted / best - 1)"
        text = f"""DELETE FROM trial WHERE status <> 'claimed' AND id NOT IN (SELECT id FROM (SELECT id,
            ROW_NUMBER() OVER (PARTITION BY workload, machine ORDER BY status <> 'ok', best IS NULL, best) AS place,
            ROW_NUMBER() OVER (PARTITION BY workload, machine ORDER BY predicted IS NULL OR best IS NULL, {order} DESC)
            AS miss FROM trial WHERE status <> 'claimed') WHERE place <= ? OR miss <= ?)"""

        def change(db: sqlite3.Connection) -> int:
            claims = db.execute("SELECT id, owner, made FROM trial WHERE status='claimed'").fetchall()
            void = [(n,) for n, owner, made in claims if _is_gone(owner or "") or _is_old(made or "")]
            db.executemany("DELETE FROM trial WHERE id=?", void)
            db.execute("DELETE FROM answer")
            return len(void) + db.execute(text, (keep, misses)).rowcount

        gone = int(self._write(change))
        self._write(lambda db: db.execute("DELETE FROM sketch WHERE id NOT IN (SELECT sketch FROM trial)"))
        self._database.execute("VACUUM")
        return gone

    def _has_ln(self) -> bool:
        try:
            self._database.execute("SELECT LN(2.0)")
        except sqlite3.OperationalError:
            return False
        return True


_UNREADABLE = (ValueError, TypeError, LookupError, StopIteration, AttributeError, ArithmeticError, RecursionError)


def _record(*row: Any) -> Record:
    """A trial from its columns. Raises one of ``_UNREADABLE`` for a damaged one."""
    trace = with_decisions(json.loads(row[4]), json.loads(row[5]))
    return Record(
        row[0], row[1], row[2], row[3], trace, row[6], math.inf if row[7] is None else row[7],
        tuple(json.loads(row[8] or "[]")), row[9], row[10] or "", tuple(json.loads(row[11])), json.loads(row[12]),
        row[13] or 0, row[14] or "", row[15] or 0.0, row[16] or 0.0,
    )  # fmt: skip


def _as(kind: type[T], value: Any) -> T:
    """``value``, which a column of any type may hold. Raises ``TypeError`` if it is of another."""
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


def _object(text: Any) -> dict[str, Any]:
    return _as(dict, json.loads(text))


@contextlib.contextmanager
def _transaction(database: sqlite3.Connection) -> Generator[None, None, None]:
    """One transaction, taken before anything is read."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            database.execute("ROLLBACK")
        raise


def _is_full(error: sqlite3.Error) -> bool:
    """Whether a file cannot grow: on a full disk, or beyond a limit of the process."""
    return any(word in str(error) for word in ("is full", "disk I/O error"))


def _set_journal(database: sqlite3.Connection, mode: str) -> None:
    """Set the kind of journal; another process may be doing the same."""
    for _ in range(100):
        try:
            database.execute(f"PRAGMA journal_mode={mode}")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            time.sleep(0.05)


def _task(program: Canonical, machine: str, sizes: Mapping[str, int]) -> str:
    """The key of a program at given sizes on a machine."""
    return digest([workload_key(program.key, sizes), machine])


def workload_key(key: str, sizes: Mapping[str, int]) -> str:
    """The key of a program at given symbolic sizes."""
    return key if not sizes else f"{key}-{digest(dict(sizes))}"


def _is_old(made: str) -> bool:
    try:
        age = datetime.datetime.now(datetime.timezone.utc) - datetime.datetime.fromisoformat(made)
    except (ValueError, TypeError):
        return True
    return age.total_seconds() > STALE_SECONDS


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def on_network(path: Path) -> bool:
    """Whether a file lies in a network folder, where a write-ahead log cannot be shared."""
    kinds = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "ceph", "lustre", "afs"}
    try:
        lines = Path("/proc/mounts").read_text().splitlines()
    except OSError:
        return False
    folder = str(path.absolute().parent)
    best, kind = "", ""
    for line in lines:
        parts = line.split()
        if len(parts) > 2 and (folder + "/").startswith(parts[1].rstrip("/") + "/") and len(parts[1]) >= len(best):
            best, kind = parts[1], parts[2]
    return kind in kinds
