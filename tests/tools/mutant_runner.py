"""Runs tests with mutants: one process collects the tests once, and forks a child for each mutant.

A child gives the loaded functions the changed code (:mod:`tests.tools.live_code`) and runs the tests that need it, so
that a mutant costs only these. Before, the tests run in children, a few of one file in each, with counters in all functions:
that says which statements each runs, and how long it takes. Tests that fail or take long even so are not used.

Times are CPU times, so that a machine with other work gives the same outcomes. A child that waits for ever takes none:
it is ended when its test has lasted ``PATIENCE`` times as long as it may compute.
"""

from __future__ import annotations

import ast
import gc
import hashlib
import importlib
import itertools
import json
import math
import os
import pickle
import re
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from tests.tools.live_code import Counters, LiveCode, forget
from tests.tools.mutant_sites import Mutant
from tests.tools.related_tests import RelatedTests

SLOW = 15.0  # CPU seconds; a test that takes longer is not used
TOGETHER = 20  # tests of a file that one child measures; in a child each, forking would take longer than most tests
RELATED = 40  # functions of tests that are tried before the others, because they are about the changed code
UNMEASURED = 1.0  # CPU seconds that a test is expected to take that was not measured
PATIENCE = 10.0  # seconds on the clock for each CPU second that a child may take
Record = Callable[[Mutant, str, str], None]


@dataclass(frozen=True)
class Limits:
    """CPU seconds of tests for a mutant; seconds of everything, and of those for measuring tests."""

    mutant: float
    total: float
    measuring: float = math.inf


@dataclass
class Coverage:
    """What each test runs: its file's hash, its CPU seconds (none if it is not used), the numbers of its statements."""

    numbers: dict[str, int] = field(default_factory=dict)
    tests: dict[str, tuple[str, float | None, bytes]] = field(default_factory=dict)

    def knows(self, item: pytest.Item) -> bool:
        return item.nodeid in self.tests and self.tests[item.nodeid][0] == _hash(item)

    def running(self, statements: Iterable[str]) -> dict[str, float]:
        """The seconds of the tests that run one of the statements: the same time for each file, its fastest first."""
        wanted = [self.numbers[key] for key in statements if key in self.numbers]
        found: dict[str, float] = {}
        for name, (_, seconds, packed) in self.tests.items():
            hits = zlib.decompress(packed)
            if seconds is not None and any(n < len(hits) and hits[n] for n in wanted):
                found[name] = seconds
        ends = _ends(found)
        return dict(sorted(found.items(), key=lambda test: ends[test[0]]))

    def specific(self, statements: Iterable[str], tests: Iterable[str]) -> list[str]:
        """The ``tests``, first those that run many of the statements and little else: the cosine of the two sets."""
        wanted = [self.numbers[key] for key in statements if key in self.numbers]
        likeness: dict[str, float] = {}
        for name in tests:
            hits = zlib.decompress(self.tests[name][2])
            likeness[name] = sum(hits[n] for n in wanted if n < len(hits)) / math.sqrt(hits.count(1) or 1)
        return sorted(likeness, key=lambda name: -likeness[name])


def compares_texts(item: Any) -> bool:
    """Whether a test compares all that it makes with what is recorded, in texts or in a table of outcomes: nearly any change
    of what it runs fails it."""
    return not {"recorded_texts", "outcomes"}.isdisjoint(vars(getattr(item, "module", type(item))))


def _ends(tests: dict[str, float]) -> dict[str, float]:
    """When each test ends, if the files run at once, each its fastest test first."""
    clocks: dict[str, float] = defaultdict(float)
    ends: dict[str, float] = {}
    for name, seconds in sorted(tests.items(), key=lambda test: test[1]):
        file = name.partition("::")[0]
        clocks[file] += seconds
        ends[name] = clocks[file]
    return ends


def _by_file(items: Iterable[pytest.Item]) -> dict[Path, list[pytest.Item]]:
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    return files


def _in_turn(files: Mapping[Path, list[pytest.Item]], size: int) -> Iterator[list[pytest.Item]]:
    """The first ``size`` tests of each file, then the next of each."""
    groups = ([tests[at : at + size] for at in range(0, len(tests), size)] for tests in files.values())
    for turn in itertools.zip_longest(*groups):
        yield from (group for group in turn if group is not None)


_hashes: dict[Path, str] = {}


def _hash(item: pytest.Item) -> str:
    if item.path not in _hashes:
        _hashes[item.path] = hashlib.sha256(item.path.read_bytes()).hexdigest()[:16]
    return _hashes[item.path]


def run(
    root: Path,
    mutants: Sequence[Mutant],
    tests: Sequence[str],
    files: Sequence[str],
    store: Path,
    limits: Limits,
    record: Record,
    unmeasured: Sequence[str] = (),
) -> None:
    """Runs the mutants with the tests that matter, and records each outcome. ``files``: those whose statements count;
    ``unmeasured``: files and folders of tests of which only those are used that are about the changed code."""
    runner = _Runner(root, mutants, files, store, limits, record, unmeasured)
    pytest.main(["-q", "-s", f"--rootdir={root}", *tests, *unmeasured], [runner])


class _Runner:
    """A plugin of pytest that runs the collected tests in its own way."""

    def __init__(
        self,
        root: Path,
        mutants: Sequence[Mutant],
        files: Sequence[str],
        store: Path,
        limits: Limits,
        record: Record,
        unmeasured: Sequence[str],
    ):
        self.root, self.mutants, self.files = root, mutants, files
        self.store, self.limits, self.record = store, limits, record
        self.unmeasured = [Path(place).resolve() for place in unmeasured]
        self.end = time.monotonic() + limits.total

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for file in self.files:
            _load(file)
        items = {item.nodeid: item for item in session.items}
        self.related = RelatedTests(session.items)
        forget()
        live = LiveCode(self.root)
        gc.freeze()  # the children's collections have what they made themselves to look at, not this process's objects
        known = self.coverage()
        end = min(self.end, time.monotonic() + self.limits.measuring)
        self.measure(live, [item for item in session.items if self.is_due(item, known)], end)
        for mutant in self.mutants:
            if time.monotonic() > self.end:
                break
            self.record(mutant, *self.judged(live, mutant, items))
        gc.unfreeze()
        return True

    def is_due(self, item: pytest.Item, coverage: Coverage) -> bool:
        """Whether a test is to be measured."""
        return not coverage.knows(item) and not any(item.path.is_relative_to(place) for place in self.unmeasured)

    def judged(self, live: LiveCode, mutant: Mutant, items: dict[str, pytest.Item]) -> tuple[str, str]:
        """The outcome of a mutant: by the tests that run what is changed, then by those that were not measured, of
        the same files (or else of those that run its file); those that are about the changed code come first, measured or
        not, in turn with those that compare all that they make with records of it, and with those that run much of the
        changed function and little else. Of tests that were not measured, one that fails is measured: it has to pass
        without the change."""
        coverage = self.coverage()
        tests = self.tests(mutant, items, coverage)
        near = (key for key in coverage.numbers if key.startswith(f"{mutant.file}:"))
        files = dict.fromkeys(
            t.path for t in tests or (items[name] for name in coverage.running(near) if name in items)
        )
        others = {path: [i for i in items.values() if i.path == path and self.is_due(i, coverage)] for path in files}
        unmeasured = [item for group in _in_turn(others, 1) for item in group]
        following = tests | dict.fromkeys(unmeasured, UNMEASURED)
        usable = [i for i in items.values() if i in tests or not coverage.knows(i)]
        first = self.related.of(mutant, (self.root / mutant.file).read_text("utf-8"), usable, RELATED)
        function = [key for key in coverage.numbers if key.startswith(f"{mutant.statement.split(': ', 1)[0]}: ")]
        specific = coverage.specific(function, [item.nodeid for item in tests])
        near_first = [*(items[name] for name in specific), *unmeasured]
        turns = itertools.zip_longest(first, filter(compares_texts, near_first), following, near_first)
        order = (item for turn in turns for item in turn if item is not None)
        kind, by = self.outcome(live, mutant, {item: following.get(item, UNMEASURED) for item in order})
        failed = [
            i for i in (*first, *following) if kind == "killed" and by.startswith(i.nodeid) and not coverage.knows(i)
        ]
        self.measure(live, failed, math.inf)
        measured = self.coverage().tests
        return self.judged(live, mutant, items) if any(measured[i.nodeid][1] is None for i in failed) else (kind, by)

    def tests(self, mutant: Mutant, items: dict[str, pytest.Item], coverage: Coverage) -> dict[pytest.Item, float]:
        """The measured tests that run what is changed, with their seconds."""
        seconds = coverage.running(self.statements(mutant, coverage))
        tests = {items[name]: s for name, s in seconds.items() if name in items}
        return tests | (_naming(mutant, items, coverage) if mutant.table is not None else {})

    def coverage(self) -> Coverage:
        return pickle.loads(self.store.read_bytes()) if self.store.is_file() else Coverage()

    # which tests run what

    def measure(self, live: LiveCode, items: Sequence[pytest.Item], end: float) -> None:
        """Adds what ``items`` run to the stored coverage, as many as there is time for, of each file in turn."""
        if items:
            _child(lambda send: self._measure(live, items, end), lambda line: None, 1e9)

    def _measure(self, live: LiveCode, items: Sequence[pytest.Item], end: float) -> None:
        coverage = self.coverage()
        self.count(live, coverage.numbers)
        hits = bytearray(len(coverage.numbers))
        for file in self.files:
            module = live.module(file)
            if module is not None:
                vars(module)["__hits__"] = hits
        for number, group in enumerate(_in_turn(_by_file(items), TOGETHER)):
            if time.monotonic() > end:
                break
            coverage.tests |= {item.nodeid: (_hash(item), *measured) for item, *measured in _measured(group, hits)}
            if number % 10 == 9:
                self.save(coverage)
        self.save(coverage)

    def save(self, coverage: Coverage) -> None:
        part = self.store.with_suffix(".part")
        part.write_bytes(pickle.dumps(coverage))
        part.replace(self.store)

    def count(self, live: LiveCode, numbers: dict[str, int]) -> None:
        """Counters in every function of the files."""
        for file in self.files:
            if live.module(file) is not None:
                source = (self.root / file).read_text(encoding="utf-8")
                live.change(file, Counters(file, source, numbers).visit(ast.parse(source)))

    def statements(self, mutant: Mutant, coverage: Coverage) -> list[str]:
        """The statements that make a mutant matter: of a table, all in functions that name it. Of a statement newer than
        the coverage, those of its function, or else of its file, or else all."""
        numbers = coverage.numbers
        if mutant.table is None:
            place = mutant.statement.split(": ", 1)[0]
            same = [mutant.statement] if mutant.statement in numbers else []
            same = same or [key for key in numbers if key.startswith(f"{place}: ")]
            same = same or [key for key in numbers if key.startswith(f"{mutant.file}:")]
            return same or list(numbers)
        name = mutant.statement.split(":")[1]
        word, found = re.compile(rf"\b{re.escape(name)}\b"), []
        for file in self.files:
            source = (self.root / file).read_text(encoding="utf-8")
            if word.search(source):
                inner = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef)]
                using = {n.name for n in inner if word.search(ast.get_source_segment(source, n) or "")}
                found += [key for key in numbers if _functions(key, file) & using]
        return found

    # mutants

    def outcome(self, live: LiveCode, mutant: Mutant, tests: dict[pytest.Item, float]) -> tuple[str, str]:
        """``killed``, ``survived``, ``undecided``, ``uncovered`` or ``invalid``, and by which test or how many."""
        if not tests:
            return "uncovered", ""
        following = dict(zip(tests, [*tests][1:]))
        heard: list[tuple[str, str]] = []

        def work(send: Callable[..., None]) -> None:
            _apply(live, self.root, mutant)
            for number, (item, usual) in enumerate(tests.items()):
                if _cpu_seconds() > self.limits.mutant:
                    send("undecided", f"{number} of {len(tests)} tests")
                    return
                may_take = 10 * usual + min(20, self.limits.mutant)
                send("run", item.nodeid, may_take)
                _allow(may_take)
                if not _passes(item, following.get(item)):
                    send("killed", item.nodeid)
                    return
            send("survived", f"{len(tests)} tests")

        def patience(line: list[Any]) -> float:
            heard.append((line[0], line[1]))
            return PATIENCE * (line[2] if line[0] == "run" else 1)

        ended_by = _child(work, patience, 60)
        kind, what = heard[-1] if heard else ("invalid", "the change could not be made")
        if kind != "run":
            return kind, what
        return "killed", f"{what} ({'no end' if ended_by in (signal.SIGXCPU, signal.SIGKILL) else 'crash'})"


def _naming(mutant: Mutant, items: dict[str, pytest.Item], coverage: Coverage) -> dict[pytest.Item, float]:
    """The tests whose own file names the table of a mutant."""
    word = re.compile(rf"\b{re.escape(mutant.statement.split(':')[1])}\b")
    files = {path for path in {item.path for item in items.values()} if word.search(path.read_text("utf-8"))}
    known = {name: test[1] for name, test in coverage.tests.items() if name in items and items[name].path in files}
    return {items[name]: seconds for name, seconds in known.items() if seconds is not None}


def _apply(live: LiveCode, root: Path, mutant: Mutant) -> None:
    source = (root / mutant.file).read_text(encoding="utf-8")
    if mutant.table is None:
        live.change(mutant.file, mutant.applied_to(source))
    else:
        live.change_table(mutant.file, mutant.assignment(source))


def _measured(items: list[pytest.Item], hits: bytearray) -> Iterator[tuple[pytest.Item, float | None, bytes]]:
    """The CPU seconds of each test, if it passes in time, and the statements that it runs. One child runs them up to one that
    does not pass, which is tried again as the first of another: what one test keeps in a cache, those behind it do not run."""
    rest = items
    while rest:
        found: list[list[Any]] = []
        _child(partial(_tell, rest, hits), lambda line: found.append(line) or PATIENCE * SLOW, PATIENCE * SLOW)
        yield from ((item, took, bytes.fromhex(packed)) for item, (took, packed) in zip(rest, found))
        if not found:
            yield rest[0], None, zlib.compress(b"")
        rest = rest[len(found) or 1 :]


def _tell(items: Sequence[pytest.Item], hits: bytearray, send: Callable[..., None]) -> None:
    """Sends what each test takes and runs, up to the first that does not pass."""
    for item in items:
        hits[:] = bytes(len(hits))
        _allow(SLOW)
        before = _cpu_seconds()
        if not _passes(item, None):
            return
        send(_cpu_seconds() - before, zlib.compress(bytes(hits)).hex())


def _functions(key: str, file: str) -> set[str]:
    """The functions around a statement of ``file``; none if it is in another."""
    name, around = key.split(":")[:2]
    return set(around.split(".")) if name == file else set()


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))


def _load(file: str) -> None:
    """Import a module before the children are made; what needs a device may stay out."""
    name = file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    try:
        importlib.import_module(name)
    except Exception as error:
        print(f"{name} is left out: {error}", file=sys.stderr)


def _cpu_seconds() -> float:
    """What this process and those that it waited for have computed."""
    return sum(os.times()[:4])


def _allow(seconds: float) -> None:
    """This process may compute for so long from now on; then SIGXCPU ends it."""
    most = math.ceil(time.process_time() + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _child(work: Callable[..., None], heard: Callable[[list[Any]], float | None], seconds: float) -> int:
    """Runs ``work(send)`` in a child; the signal that ended it, or 0.

    ``heard`` gets each message and answers how long to wait for the next, at first ``seconds``.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _in_child(work, reading, writing)
    os.close(writing)
    ended = False
    with os.fdopen(reading, encoding="utf-8") as pipe:
        rest, limit = "", time.monotonic() + seconds
        while not ended and select.select([pipe], [], [], max(0.0, limit - time.monotonic()))[0]:
            part = os.read(pipe.fileno(), 1 << 20).decode()
            ended = not part
            *lines, rest = (rest + part).split("\n")
            for line in lines:
                limit = time.monotonic() + (heard(json.loads(line)) or 0.0)
    if not ended:
        os.killpg(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def _in_child(work: Callable[..., None], reading: int, writing: int) -> None:
    """The child's life: quiet, with a compile cache of its own, in a process group that can be ended."""
    os.setpgid(0, 0)
    os.close(reading)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    place = tempfile.mkdtemp()
    os.environ["TIR_CACHE_DIR"] = place
    try:
        work(lambda *message: os.write(writing, (json.dumps(message) + "\n").encode()))
    finally:
        shutil.rmtree(place, ignore_errors=True)
        os._exit(0)
