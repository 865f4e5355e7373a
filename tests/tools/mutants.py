"""Mutation test of the tests: ``python -m tests.tools.mutants --count 100 --seed 0``.

Each mutant is one small change of the code (a comparison, an operator, a constant, a condition turned round, a guard or
a statement removed), drawn at random over the rooms of :data:`ROOMS`. The tests that run the changed statement are run
with it up to the first failure: in turn those about the changed code, the fastest, and those that run little else. A mutant is *killed* by a
failure, or by a test that no longer ends; where all of them pass it *survives*; it is *undecided* where ``--timeout``
seconds of computing were not enough, and *uncovered* where no test runs the statement. The last three are printed as a
diff: a test is missing, the code is not needed, or the change makes no difference. The latter are listed, each with its
reason, in ``equivalent_mutants.json``.

Which tests run which statements is measured once and kept in ``build/mutants``, beside the results, so that a run can be
stopped (``--seconds``) and goes on where it was. It is measured again for files of tests that changed; of a statement
that changed, the tests of its function count. ``--again`` repeats the mutants that were not killed, with the tests that
there are now, or with those of the files named behind it: what these do not kill stays what it was.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.tools.mutant_runner import Limits, run
from tests.tools.mutant_sites import Mutant, is_python, mutants_of
from tir.display import text_table

ROOT = Path(__file__).resolve().parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.json")
STORE = ROOT / "build" / "mutants"

OUTCOMES = ("killed", "survived", "uncovered", "undecided", "equivalent")
# a room of its own: what decides whether a step is legal
LEGALITY = ("tir/analysis/dependence", "tir/schedule/invariants")
# tests of texts and documents: of these, only those are run that are about the changed code
OTHERS = ("docs",)


def rooms_of(root: Path) -> dict[str, list[str]]:
    """The files of each room: of the folder below ``tir``, of ``codegen``, of the core for those right in ``tir``."""
    rooms: dict[str, list[str]] = {}
    for file in sorted([*root.glob("tir/**/*.py"), *root.glob("codegen/**/*.py")]):
        name = file.relative_to(root).as_posix()
        rooms.setdefault(_room(name), []).append(name)
    return dict(sorted(rooms.items()))


def _room(file: str) -> str:
    if file.startswith(LEGALITY):
        return "legality"
    package, *inner = file.split("/")
    return package if package != "tir" else inner[0] if len(inner) > 1 else "core"


ROOMS = rooms_of(ROOT)


@dataclass(frozen=True)
class Result:
    """The outcome of a mutant; ``by``: the test that killed it, or how many tests passed."""

    key: str
    room: str
    outcome: str
    by: str


def draw(root: Path, rooms: list[str], count: int, seed: int) -> list[tuple[str, Mutant]]:
    """``count`` mutants with the room of each: as many of each room, and of a room each as likely as any other.

    A larger ``count`` draws the same ones and more.
    """
    orders = [_order(root, room, seed) for room in rooms]
    return [next(orders[number % len(rooms)]) for number in range(count)]


def _order(root: Path, room: str, seed: int) -> Iterator[tuple[str, Mutant]]:
    """The mutants of a room in random order."""
    sources = {file: (root / file).read_text("utf-8") for file in ROOMS[room]}
    found = [mutant for file, source in sources.items() for mutant in mutants_of(file, source)]
    random.Random(f"{seed} {room}").shuffle(found)
    made = (mutant for mutant in found if is_python(mutant.applied_to(sources[mutant.file])))
    return (
        (room, mutant) for mutant in made if mutant.table is None or is_read_later(root, mutant.statement.split(":")[1])
    )


def is_read_later(root: Path, name: str) -> bool:
    """Whether a function or a test names what a module assigns: what only imports read is not changed by assigning it again."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    texts = ((root / file).read_text("utf-8") for files in ROOMS.values() for file in files)
    if any(_is_in_a_function(text, word) for text in texts if word.search(text)):
        return True
    return any(word.search(file.read_text("utf-8")) for file in (root / "tests").glob("**/*.py"))


def _is_in_a_function(text: str, word: re.Pattern[str]) -> bool:
    functions = (n for n in ast.walk(ast.parse(text)) if isinstance(n, (ast.FunctionDef, ast.Lambda)))
    bodies = (part for n in functions for part in (n.body if isinstance(n.body, list) else [n.body]))
    return any(word.search(ast.get_source_segment(text, part) or "") for part in bodies)


def equivalents() -> dict[str, str]:
    """The reason of each mutant that is known to change nothing, by its key."""
    return json.loads(EQUIVALENT.read_text("utf-8"))


def found_again(root: Path, keys: Iterable[str]) -> dict[str, Mutant]:
    """The mutants with these keys, of those that the code still has."""
    known: dict[str, dict[str, Mutant]] = {}
    for file in {key.partition(":")[0] for key in keys}:
        source = (root / file).read_text("utf-8") if (root / file).is_file() else ""
        known[file] = {m.key(source): m for m in mutants_of(file, source)}
    places = ((key, known[key.partition(":")[0]]) for key in keys)
    return {key: mutants[key] for key, mutants in places if key in mutants}


def stale(root: Path, keys: Iterable[str]) -> list[str]:
    """Keys of mutants that the code does not have any more."""
    return sorted(set(keys) - set(found_again(root, list(keys))))


def load(path: Path) -> dict[str, Result]:
    """The last result of each mutant."""
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    found = [Result(**json.loads(line)) for line in lines]
    return {result.key: result for result in found}


def summary(results: Iterable[Result], known: Iterable[str]) -> str:
    """A row for each room: killed, not killed by outcome, equivalent ones, and the score without these."""
    equivalent, counts = set(known), Counter[tuple[str, str]]()
    for result in results:
        outcome = "equivalent" if result.key in equivalent and result.outcome != "killed" else result.outcome
        counts[result.room, outcome] += 1
        counts["all", outcome] += 1
    rows = []
    for room in (*ROOMS, "all"):
        numbers = [counts[room, o] for o in OUTCOMES]
        if sum(numbers):
            score = f"{numbers[0] / sum(numbers[:4]):.1%}" if sum(numbers[:4]) else ""
            rows.append((room, *map(str, numbers), score))
    return text_table(("room", *OUTCOMES, "score"), rows, right=range(1, 7))


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.tools.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=120, help="CPU seconds of tests for each mutant")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this time; the next run goes on")
    parser.add_argument("--measuring", type=float, default=1e9, help="of these, at most so many to measure tests")
    parser.add_argument("--room", action="append", choices=ROOMS, help="only this room (may be repeated)")
    parser.add_argument("--again", action="store_true", help="draw none, and repeat those that were not killed")
    parser.add_argument("--summary", action="store_true", help="run nothing")
    parser.add_argument("tests", nargs="*", help="files or folders of tests to run alone (with --again)")
    options = parser.parse_args(argv)
    if options.tests and not options.again:
        parser.error("some tests say what they kill, not what survives: they go with --again only")
    return options


def main(argv: list[str] | None = None) -> int:
    options = _options(argv)
    rooms, known, path = options.room or list(ROOMS), equivalents(), STORE / "results.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    before = load(path)
    if options.again or options.summary:
        chosen = [key for key, done in before.items() if done.room in rooms]
        by_key = {key: (before[key].room, mutant) for key, mutant in found_again(ROOT, chosen).items()}
    else:
        drawn = draw(ROOT, rooms, options.count, options.seed)
        by_key = {m.key((ROOT / m.file).read_text("utf-8")): (room, m) for room, m in drawn}
    sources = {m.file: (ROOT / m.file).read_text("utf-8") for _, m in by_key.values()}

    def is_due(key: str) -> bool:
        done = before.get(key)
        return done is None or (options.again and done.outcome != "killed" and key not in known)

    def record(mutant: Mutant, outcome: str, by: str) -> None:
        key = mutant.key(sources[mutant.file])
        if options.tests and outcome != "killed":
            return
        before[key] = Result(key, by_key[key][0], outcome, by)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(before[key])) + "\n")
        line = sources[mutant.file].count("\n", 0, mutant.start) + 1
        print(f"{outcome:9} {mutant.file}:{line}: {by}", flush=True)
        if outcome != "killed":
            print(mutant.diff(sources[mutant.file]), flush=True)

    due = [m for key, (_, m) in by_key.items() if is_due(key)]
    others = [str(ROOT / "tests" / name) for name in OTHERS]
    folders = sorted({str(file.parent) for file in ROOT.glob("tests/*/test_*.py")} - {*others})
    if due and not options.summary:
        run(
            ROOT,
            due,
            options.tests or folders,
            [file for files in ROOMS.values() for file in files],
            STORE / "tests.pickle",
            Limits(options.timeout, options.seconds, options.measuring),
            record,
            [] if options.tests else others,
        )
    results = [before[key] for key in by_key if key in before]
    print(summary(results, known))
    for key in stale(ROOT, known):
        print(f"no mutant any more, remove it from {EQUIVALENT.name}: {key}")
    return 1 if any(r.outcome != "killed" and r.key not in known for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
