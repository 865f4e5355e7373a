"""``python -m tir.tune show|export|import|prune FILE``: what a database of records has, and moving it.

``export`` prints lines of JSON, each complete in itself; ``import`` reads them from standard input or files, replays each
schedule, and skips what it cannot use with the number of its line; ``prune`` keeps the best of each program.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..canonical import canonical
from ..command import answered
from ..display import duration
from ..errors import TirError
from ..schedule import Trace
from ..script import parse_data
from .record import Record, read_lines
from .records import Records


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry a command out; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tir.tune", description="Records of tuning.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in (
        ("show", "the best of each program and machine"),
        ("export", "every trial as a line of JSON"),
        ("import", "add such lines"),
        ("prune", "keep the best of each program and machine"),
    ):
        one = commands.add_parser(name, help=about)
        one.add_argument("db", type=Path)
        if name == "import":
            one.add_argument("files", nargs="*", type=Path, help="default: standard input")
        if name == "prune":
            one.add_argument("--keep", type=int, default=20, help="trials of each program and machine (default: 20)")
    given = parser.parse_args(arguments)
    return answered(lambda: _carry_out(given), failed=2)


def _carry_out(given: argparse.Namespace) -> int:
    if given.command != "import" and not given.db.exists():
        raise TirError(f"{given.db} does not exist")
    with Records(given.db) as records:
        if given.command == "show":
            show(records)
        elif given.command == "export":
            for record in records.all():
                print(record.as_json())
        elif given.command == "prune":
            print(f"{records.prune(given.keep)} trials deleted, {records.count()} kept")
        else:
            return read(records, given.files)
    return 0


def show(records: Records) -> None:
    """A line for each program and machine: the best time, the trials, the program's parameters. Then the runs."""
    found: dict[tuple[str, str], list[Record]] = {}
    for record in records.all():
        found.setdefault((record.key, record.machine), []).append(record)
    for (key, machine), rows in found.items():
        best = min(row.seconds for row in rows)
        failed = sum(row.status not in ("ok", "censored") for row in rows)
        line = next((line.strip() for line in rows[0].script.splitlines() if "def " in line), "")
        print(f"{key[:12]} on {machine[:8]}: {duration(best)}, {len(rows)} trials, {failed} failed  {line}")
    for number, started, seed, answers in records.runs():
        print(f"run {number} of {started}: seed {seed}, {answers} measurements, tir.tune(…, replay={number})")
    if records.damaged:
        print(f"{records.damaged} rows could not be read", file=sys.stderr)


def read(records: Records, files: Sequence[Path]) -> int:
    """Add the records of files of JSON lines; 1 if a file or a line could not be used."""
    status = added = known = 0
    sources: list[tuple[str, Iterable[str]]] = []
    for path in files:
        try:
            sources.append((str(path), path.read_text(encoding="utf-8").splitlines()))
        except (OSError, ValueError) as error:  # a folder, another encoding
            status = 1
            print(f"{str(path)!r} cannot be read: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
    for name, lines in sources if files else [("standard input", sys.stdin)]:
        for number, record in read_lines(lines):
            try:
                if isinstance(record, ValueError):
                    raise record
                if _add(records, record):
                    added += 1
                else:
                    known += 1
            except (TirError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
                status = 1
                print(f"{name}, line {number}: {str(error).splitlines()[0]}", file=sys.stderr)
    print(f"{added} trials added, {known} were there")
    return status


def _add(records: Records, record: Record) -> bool:
    """Add a record whose schedule can be made here, under the key that its program has here."""
    program = canonical(parse_data(record.script))
    Trace.from_json(record.trace).replay(program.mod)
    return records.add(record, program)


if __name__ == "__main__":
    sys.exit(main())
