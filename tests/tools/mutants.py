"""Mutation test of the tests: ``python -m tests.tools.mutants --count 100 --seed 0``.

Each mutant is one small change of the code (a comparison, an operator, a constant, a condition turned round), drawn at
random over the rooms of :data:`ROOMS`. It is made in a copy of the checkout, and the tests of its room run there: those
that name the changed module first, up to the first failure or ``--timeout`` seconds. A mutant is *killed* by a failure;
where all tests pass it *survives*, and is printed as a diff: a test is missing, or the change makes no difference. One
that neither fails nor passes in time is undecided.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[2]

# the tests of each room, cheapest first: folders of tests mirror the rooms
ROOMS = {
    "tir/analysis": ("tests/analysis", "tests/schedule"),
    "tir/arith": ("tests/arith", "tests/analysis", "tests/lower", "tests/schedule"),
    "tir/poly": ("tests/arith", "tests/poly", "tests/analysis", "tests/schedule"),
    "tir/schedule": ("tests/schedule", "tests/analysis"),
    "tir/transform": ("tests/lower", "tests/cpu"),
    "codegen": ("tests/cpu", "tests/cuda"),
}

_COMPARE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "is not": "is", "is": "is not",
            "not in": "in", "in": "not in"}  # fmt: skip
_ARITHMETIC = {"+": "-", "-": "+", "*": "+", "//": "*", "%": "//"}
_BOOL = {"and": "or", "or": "and"}


@dataclass(frozen=True)
class Mutant:
    """``text`` in place of what stands at ``start:end`` of a file (offsets into its text)."""

    file: str
    start: int
    end: int
    text: str

    def applied_to(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]

    def diff(self, source: str) -> str:
        lines = difflib.unified_diff(
            source.splitlines(), self.applied_to(source).splitlines(), self.file, self.file, lineterm="", n=2
        )
        return "\n".join(lines)


# ---------------------------------------------------------------- where mutants may be


class _Sites(ast.NodeVisitor):
    """The mutants of one file."""

    def __init__(self, file: str, source: str):
        self.file = file
        self.source = source
        self.found: list[Mutant] = []
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._lines = source.splitlines()
        self.visit(ast.parse(source))

    def offset(self, line: int, column: int) -> int:
        """An offset in characters; ``ast`` counts columns in bytes."""
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def add(self, start: int, end: int, text: str) -> None:
        self.found.append(Mutant(self.file, start, end, text))

    def between(self, left: ast.expr, right: ast.expr, table: dict[str, str]) -> None:
        """Another operator between two operands."""
        start, end = self.span(left)[1], self.span(right)[0]
        gap = self.source[start:end]
        for operator in sorted(table, key=len, reverse=True):
            pattern = rf"\b{operator}\b" if operator.isidentifier() or " " in operator else re.escape(operator)
            match = re.search(pattern, gap)
            if match is not None:
                self.add(start + match.start(), start + match.end(), table[operator])
                return

    def negate(self, test: ast.expr) -> None:
        start, end = self.span(test)
        self.add(start, end, f"(not ({self.source[start:end]}))")

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, right in zip(operands, operands[1:]):
            self.between(left, right, _COMPARE)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)) and not _is_text(node):
            self.between(node.left, node.right, _ARITHMETIC)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:]):
            self.between(left, right, _BOOL)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            start, end = self.span(node)
            inner = self.span(node.operand)
            self.add(start, end, f"bool({self.source[inner[0] : inner[1]]})")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" not in ast.dump(node.test):
            self.negate(node.test)
            self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self.negate(test)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        start, end = self.span(node)
        if isinstance(node.value, bool):
            self.add(start, end, str(not node.value))
        elif isinstance(node.value, int):
            self.add(start, end, str(node.value + 1))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
            self.visit(default)
        for statement in node.body:
            self.visit(statement)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assert(self, node: ast.Assert) -> None:
        """Assertions are for readers and type checkers."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Texts are compared by golden cases only; positions inside are not kept by older versions of Python."""

    def visit_Call(self, node: ast.Call) -> None:
        if getattr(node.func, "id", "") not in ("cast", "TypeVar", "lru_cache"):
            self.generic_visit(node)


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(s, ast.JoinedStr) or (isinstance(s, ast.Constant) and isinstance(s.value, str)) for s in sides
    )


def mutants_of(file: str, source: str) -> list[Mutant]:
    """Every mutant of a source file that is still Python."""
    return [m for m in _Sites(file, source).found if _parses(m.applied_to(source))]


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def draw(root: Path, rooms: Sequence[str], count: int, seed: int) -> list[tuple[str, Mutant]]:
    """``count`` different mutants with the room of each, the rooms in turn: a file by its size, then a place in it."""
    generator = random.Random(seed)
    files = {room: [(f, f.stat().st_size) for f in sorted((root / room).rglob("*.py"))] for room in rooms}
    found: dict[Mutant, str] = {}
    for number in range(100 * count):
        room = rooms[number % len(rooms)]
        names, sizes = zip(*files[room])
        path = generator.choices(names, weights=sizes)[0]
        source = path.read_text(encoding="utf-8")
        sites = _Sites(path.relative_to(root).as_posix(), source).found
        mutant = generator.choice(sites) if sites else None
        if mutant is not None and _parses(mutant.applied_to(source)):
            found.setdefault(mutant, room)
        if len(found) == count:
            break
    return [(room, mutant) for mutant, room in found.items()]


# ---------------------------------------------------------------- running the tests


def selected_tests(root: Path, room: str, file: str) -> list[str]:
    """The test files of a room: those that name the changed module first, by how often they do."""
    words = re.compile(rf"\b{re.escape(Path(file).stem.strip('_'))}\b")
    found = [t for folder in ROOMS[room] for t in sorted((root / folder).glob("test_*.py"))]
    counts = {t: len(words.findall(t.name.replace("_", " ") + t.read_text(encoding="utf-8"))) for t in found}
    return [t.relative_to(root).as_posix() for t in sorted(found, key=lambda t: -counts[t])]


def copied(into: Path) -> Path:
    """A copy of what git keeps of this checkout."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, into / name)
    return into


def outcome(root: Path, mutant: Mutant, tests: Sequence[str], seconds: float) -> str:
    """``killed``, ``survived``, or ``undecided`` where ``seconds`` were not enough; the file is put back."""
    path = root / mutant.file
    source = path.read_text(encoding="utf-8")
    path.write_text(mutant.applied_to(source), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-W", "ignore", *tests]
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return "undecided"
    finally:
        path.write_text(source, encoding="utf-8")
    return "survived" if done.returncode == 0 else "killed"


def run(chosen: Sequence[tuple[str, Mutant]], seconds: float, jobs: int) -> Iterator[tuple[str, Mutant, str]]:
    """The outcome of each mutant, with its room."""
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(jobs) as pool:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(jobs):
            (Path(place) / str(number)).mkdir()
            copies.put(copied(Path(place) / str(number)))

        def one(item: tuple[str, Mutant]) -> tuple[str, Mutant, str]:
            root = copies.get()
            try:
                return *item, outcome(root, item[1], selected_tests(root, item[0], item[1].file), seconds)
            finally:
                copies.put(root)

        yield from pool.map(one, chosen)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.tools.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=120, help="seconds of tests for each mutant")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--room", action="append", choices=ROOMS, help="only this room (may be repeated)")
    options = parser.parse_args(argv)
    chosen = draw(ROOT, options.room or list(ROOMS), options.count, options.seed)
    counts: Counter[str] = Counter()
    for number, (room, mutant, result) in enumerate(run(chosen, options.timeout, options.jobs)):
        counts[result] += 1
        source = (ROOT / mutant.file).read_text(encoding="utf-8")
        line = source.count("\n", 0, mutant.start) + 1
        print(f"{number:4} {result:10} {room:14} {mutant.file}:{line}", flush=True)
        if result != "killed":
            print(mutant.diff(source), flush=True)
    print(", ".join(f"{name} {counts[name]}" for name in ("killed", "survived", "undecided")))
    return 1 if counts["survived"] else 0


if __name__ == "__main__":
    sys.exit(main())
