"""``python -m tir.schedule.docs`` writes docs/primitives.md: the signature and docstring of every primitive."""

from __future__ import annotations

import importlib
import inspect
import re
from itertools import groupby
from pathlib import Path

from . import schedule as _schedule  # noqa: F401  (registers every primitive)
from .primitive import PRIMITIVES, QUERIES, Primitive
from .stubs import is_ours, signature_text

GOLDEN = Path(__file__).parents[2] / "tests" / "golden" / "primitives"
PAGE = Path(__file__).parents[2] / "docs" / "primitives.md"

HEADER = """# Primitives

Made by `python -m tir.schedule.docs` from the docstrings; do not edit.

Each is a method of `Schedule`. A loop or a block is given as a handle or by name (`"i"`; `"C.i"` where several loops are
called `i`). Each has a twin under `sch.can` that answers instead of acting. A refused step raises `ScheduleError` and
changes nothing. Where there is an `unsafe` parameter, `unsafe=True` skips the proof of legality, on your word.

```python
import tir
from tir.script import tir as T


@T.prim_func
def double(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
    for i in range(100):
        with T.block("B"):
            vi = T.axis.spatial(100, i)
            B[vi] = A[vi] * T.float32(2)


sch = tir.Schedule(double)
outer, inner = sch.split("i", [None, 32])
print(sch.can.vectorize(inner))
```
"""

TABLE = """## What the tests show

Counted from the golden cases in `tests/golden/primitives`: programs accepted, programs refused, refusals that name
instances or elements as proof (the others are about the request itself: a loop that is not there, a factor of zero).
Every accepted case prints and parses back, gives the same results in the reference executor, is undone to the
program before, and is made again by its trace.

"""


def text() -> str:
    """The page as text."""
    families = [(_title(p), p) for p in PRIMITIVES.values() if is_ours(p)]
    families.sort(key=lambda pair: pair[0])  # stable: inside a family, the order of the file
    parts = [HEADER, "\n## Questions\n\n" + "".join(_entry(p) for p in QUERIES.values() if is_ours(p))]
    for title, group in groupby(families, key=lambda pair: pair[0]):
        parts.append(f"\n## {title}\n\n" + "".join(_entry(p) for _, p in group))
    index = ", ".join(f"[`{name}`](#{name})" for name in sorted(p.name for _, p in families))
    return "".join([parts[0], "\n", index, "\n\n", table(), *parts[1:]])


def ours() -> list[str]:
    """The names of the primitives of this package, without those of packages plugged in."""
    return sorted(p.name for p in PRIMITIVES.values() if is_ours(p))


def table() -> str:
    """What the golden cases show of each primitive, counted from their files."""
    rows = ["| primitive | accepts | refuses | with a witness | `unsafe` | undo | trace | before → after |"]
    rows.append("|---|---|---|---|---|---|---|---|")
    totals = [0, 0, 0]
    for name in ours():
        texts = [p.read_text(encoding="utf-8") for p in sorted((GOLDEN / name).glob("*.txt"))]
        accepted = sum("\n== after\n" in text for text in texts)
        refusals = [text.partition("\n== refused\n")[2] for text in texts if "\n== refused\n" in text]
        proved = sum(has_witness(text) for text in refusals)
        totals = [n + more for n, more in zip(totals, (accepted, len(refusals), proved))]
        p = PRIMITIVES[name]
        marks = [_yes("unsafe" in p.signature.parameters), _yes(accepted), _yes(accepted), _yes("::" in p.doc)]
        cells = [f"[`{name}`](#{name})", accepted, len(refusals), proved, *marks]
        rows.append("| " + " | ".join(map(str, cells)) + " |")
    rows.append(f"| all | {totals[0]} | {totals[1]} | {totals[2]} | | | | |")
    return TABLE + "\n".join(rows) + "\n"


def _yes(holds: object) -> str:
    return "yes" if holds else "–"


def has_witness(message: str) -> bool:
    """Whether a refusal's text has lines of proof between its rule and the listing of the program."""
    return any(
        re.match(r"  \S", line) and not re.match(r"\s*(\d+|\.\.\.) \|", line) for line in message.splitlines()[1:]
    )


def _title(p: Primitive) -> str:
    """The first line of the family's file, which says what its primitives do; their names, if it lists them, left out."""
    doc = inspect.getdoc(importlib.import_module(p.check.__module__)) or p.check.__module__.rpartition(".")[2]
    what, _, names = doc.splitlines()[0].rstrip(".").rpartition(": ")
    line = what if what and names.split(",")[0] in PRIMITIVES else doc.splitlines()[0].rstrip(".")
    return line[0].upper() + line[1:]


def _entry(p: Primitive) -> str:
    lines = [f"### {p.name}", "", "```text", signature_text(p), "```", ""]
    return "\n".join([*lines, _markdown(p.doc), "", ""])


def _markdown(doc: str) -> str:
    """A docstring's paragraphs as Markdown: blocks that are indented, or are examples, go into fences."""
    out: list[str] = []
    for paragraph in _paragraphs(doc):
        if paragraph[0].startswith(("    ", ">>>")):
            out.append("\n".join(["```text", *inspect.cleandoc("\n" + "\n".join(paragraph)).splitlines(), "```"]))
        else:
            body = "\n".join(paragraph).replace("``", "`")
            out.append(body[:-1] if body.endswith("::") else body)
    return "\n\n".join(out)


def _paragraphs(doc: str) -> list[list[str]]:
    """Blocks of lines between blank lines; neighbouring indented blocks are one, as they are one listing."""
    found: list[list[str]] = []
    gap = True
    for line in doc.splitlines():
        if not line.strip():
            gap = True
            continue
        listing = line.startswith("    ")
        if gap and listing and found and found[-1][0].startswith("    "):
            found[-1] += ["", line]
        elif gap or listing and not found[-1][0].startswith("    "):
            found.append([line])
        else:
            found[-1].append(line)
        gap = False
    return found


def main() -> None:
    PAGE.write_text(text(), encoding="utf-8")
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    main()
