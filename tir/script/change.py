"""What a step changes, by the tree of statements: a line for each loop, block, iterator and store, compared word by word.

Loops that print together as one ``T.grid`` are compared one by one, and how deep a statement stands does not count: a loop
that becomes parallel is one changed word, a loop around others one added line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

from .highlight import Diff

SAME, ADDED, REMOVED, CHANGED, MOVED_TO, MOVED_FROM, GAP = "same", "added", "removed", "changed", "to", "from", "gap"
ALIKE = 0.5  # the share of words from which two lines are one that changed
_HEADS = ("for ", "with ", "if ", "while ")  # of the statements that a line is in
_WORD = re.compile(r"\w+(?:\.\w+)*|\s+|.")


@dataclass(frozen=True)
class Line:
    """A statement, or a part of one, that stands ``depth`` statements deep. ``words`` are pieces of its text, each with
    ``kind`` same, added or removed; a line of the kind ``gap`` stands for lines that are not shown."""

    kind: str
    depth: int
    words: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.words)


def changes(before: Any, after: Any, context: int = 1) -> list[Line]:
    """The lines that differ between two programs, each with ``context`` lines around it and the statements that it is in;
    empty if there are none.

    >>> import tir
    >>> sch = tir.Schedule(tir.library.rows.row_sum(4, 8))
    >>> before = sch.mod
    >>> sch.parallel("i")
    >>> for line in changes(before, sch.mod, context=0):
    ...     if line.kind == "changed":
    ...         print([word for word in line.words if word[0] != "same"])
    [('removed', 'T.serial'), ('added', 'T.parallel')]
    """
    one, other = (_statements(program) for program in (before, after))
    lines = _with_moves([*_compared(one, other)])
    return _shortened(lines, context)


def program_diff(before: Any, after: Any, step: str, context: int = 3, head: str = "before") -> Diff:
    """The changes as text, under the names of the two programs: a line that goes begins with ``-``, one that comes with ``+``,
    one that changed or moved stands twice. Empty if there are none.

    >>> import tir
    >>> sch = tir.Schedule(tir.library.elementwise.scale_add(32))
    >>> before = sch.mod
    >>> sch.unroll("i")
    >>> program_diff(before, sch.mod, "unrolled", context=0)
    --- before
    +++ unrolled
             …
    -        for i in T.serial(32):
    +        for i in T.unroll(32):
    """
    found = changes(before, after, context)
    return Diff(
        "\n".join([f"--- {head}", f"+++ {step}", *(t for line in found for t in _as_text(line))]) if found else ""
    )


def _as_text(line: Line) -> Iterator[str]:
    indent = "    " * line.depth
    for sign, other, kinds in (
        ("-", ADDED, (REMOVED, MOVED_FROM, CHANGED)),
        ("+", REMOVED, (ADDED, MOVED_TO, CHANGED)),
    ):
        if line.kind in kinds:
            yield sign + indent + "".join(text for kind, text in line.words if kind != other or line.kind != CHANGED)
    if line.kind in (SAME, GAP):
        yield f" {indent}{line.text}"


def _statements(program: Any) -> list[tuple[int, str]]:
    """The depth and the text of each line."""
    text = program.script(syntax_sugar=False, header=False)
    lines = [line for line in text.splitlines() if line.strip()]
    return [((len(line) - len(line.lstrip())) // 4, line.strip()) for line in lines]


def _compared(before: list[tuple[int, str]], after: list[tuple[int, str]]) -> Iterator[Line]:
    texts = [[text for _, text in lines] for lines in (before, after)]
    first = next((n for n, (a, b) in enumerate(zip(*texts)) if a != b), min(map(len, texts)))
    rest = min(map(len, texts)) - first
    last = next((n for n, (a, b) in enumerate(zip(*map(reversed, texts))) if a != b or n == rest), rest)
    yield from _same(after[:first])
    old, new = (lines[first : len(lines) - last] for lines in (before, after))
    matcher = SequenceMatcher(None, *([text for _, text in lines] for lines in (old, new)), autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        yield from _same(new[c:d]) if tag == "equal" else _replaced(old[a:b], new[c:d])
    yield from _same(after[len(after) - last :])


def _same(lines: Sequence[tuple[int, str]]) -> Iterator[Line]:
    return (Line(SAME, depth, ((SAME, text),)) for depth, text in lines)


def _replaced(old: list[tuple[int, str]], new: list[tuple[int, str]]) -> Iterator[Line]:
    """Lines that stand for others: each old one with the next new one that is alike, in order."""
    at = 0
    for depth, text in old:
        words = next(((n, w) for n in range(at, len(new)) if (w := _words(text, new[n][1]))), None)
        if words is None:
            yield Line(REMOVED, depth, ((REMOVED, text),))
            continue
        yield from (Line(ADDED, d, ((ADDED, t),)) for d, t in new[at : words[0]])
        yield Line(CHANGED, new[words[0]][0], words[1])
        at = words[0] + 1
    yield from (Line(ADDED, d, ((ADDED, t),)) for d, t in new[at:])


def _words(old: str, new: str) -> tuple[tuple[str, str], ...] | None:
    """A line word by word; None if the two have little in common."""
    a, b = _WORD.findall(old), _WORD.findall(new)
    if a[0] != b[0]:
        return None
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    if matcher.ratio() < ALIKE:
        return None
    found: list[tuple[str, str]] = []
    for tag, i, j, k, n in matcher.get_opcodes():
        pieces = [(SAME, "".join(b[k:n]))] if tag == "equal" else [(REMOVED, "".join(a[i:j])), (ADDED, "".join(b[k:n]))]
        found += [piece for piece in pieces if piece[1]]
    return tuple(found)


def _with_moves(lines: list[Line]) -> list[Line]:
    """Lines that stand elsewhere now, unchanged, as moved."""
    gone, come = (Counter(line.text for line in lines if line.kind == kind) for kind in (REMOVED, ADDED))
    moved = {text for text in gone if gone[text] == come[text]}
    kinds = {REMOVED: MOVED_FROM, ADDED: MOVED_TO}
    return [
        replace(line, kind=kinds[line.kind]) if line.kind in kinds and line.text in moved else line for line in lines
    ]


def _shortened(lines: list[Line], context: int) -> list[Line]:
    shown: set[int] = set()
    for n, line in enumerate(lines):
        if line.kind == SAME:
            continue
        shown.update(range(max(0, n - context), min(len(lines), n + context + 1)))
        depth = line.depth
        for above in range(n - 1, -1, -1):
            if lines[above].depth < depth and lines[above].text.startswith(_HEADS):
                shown.add(above)
                depth = lines[above].depth
    made: list[Line] = []
    for before, n in zip([-1, *sorted(shown)], sorted(shown)):
        if n != before + 1:
            made.append(Line(GAP, lines[n].depth, ((SAME, "…"),)))
        made.append(lines[n])
    return made
