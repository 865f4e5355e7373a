"""The report of a simulated launch: findings (errors with their witnesses) and counts of every access."""

from __future__ import annotations

import html
import linecache
from dataclasses import dataclass, field
from typing import Any

from ...display import NO, html_table, text_table
from ...errors import RunError
from .counts import HEAD, Cost

MAX_FINDINGS = 64  # distinct ones; the same fault at the same pair of lines is only counted


@dataclass
class Site:
    """A place in the kernel: the line of its script, the user's source line, and what happens there."""

    number: int
    line: int
    text: str
    span: Any = None
    what: str = ""
    buffer: str = ""
    run: bool = True  # whether a vector is one access; else its elements are accessed one by one

    def user_line(self) -> str:
        """``file:line: text`` of the user's source; empty if it is not known."""
        if self.span is None:
            return ""
        text = linecache.getline(self.span.filename, self.span.line).strip()
        return f"{self.span.filename}:{self.span.line}" + (f": {text}" if text else "")


@dataclass(frozen=True)
class Access:
    """One side of a finding: what a thread did, and where."""

    site: Site
    block: tuple[int, int, int] | None
    thread: tuple[int, int, int] | None
    note: str = ""

    @property
    def line(self) -> int:
        return self.site.line

    def text(self) -> str:
        who = []
        if self.block is not None:
            who.append(f"block {self.block}")
        if self.thread is not None:
            who.append(f"thread {self.thread}")
        parts = [" ".join(who), self.note, f"line {self.site.line}: {self.site.text}"]
        found = "  " + ", ".join(p for p in parts[:2] if p) + (", " if who or self.note else "") + parts[2]
        user = self.site.user_line()
        return found + (f"\n    from {user}" if user else "")


@dataclass
class Finding:
    """One error: its kind, a sentence, and a witness: the accesses that prove it; ``count`` witnesses were seen.

    ``kind`` is one of race, barrier, shuffle, warp, uninitialised, bounds, alignment, async, assertion, division.
    """

    kind: str
    message: str
    accesses: tuple[Access, ...]
    count: int = 1

    @property
    def line(self) -> int:
        """The line of the kernel's script at which the error shows (that of the later access)."""
        return self.accesses[0].line

    @property
    def lines(self) -> tuple[int, ...]:
        return tuple(a.line for a in self.accesses)

    def __str__(self) -> str:
        more = f" ({self.count} times)" if self.count > 1 else ""
        return "\n".join([f"{self.kind}: {self.message}{more}", *(a.text() for a in self.accesses)])


@dataclass
class Traffic(Cost):
    """The cost of one access: of one buffer at one line."""

    site: Site = field(kw_only=True)
    redundant: int = 0
    last: Any = field(default=None, repr=False)


_HEAD = ("line", "access", *HEAD, "redundant", "text")
_NUMBERS = (0, *range(3, 10))  # the columns with numbers


@dataclass
class SimReport:
    """The report of one launch. ``ok`` when there are no findings; ``accesses`` has the counts of every access;
    ``barriers`` counts barriers executed by blocks; ``prints`` has the lines that threads printed."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    order: str
    listing: str
    shared_bytes: int = 0
    barriers: int = 0
    findings: list[Finding] = field(default_factory=list)
    accesses: list[Traffic] = field(default_factory=list)
    prints: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.findings

    def require(self) -> SimReport:
        """The report itself. Raises ``SimulationError`` listing every finding if there are any."""
        if self.findings:
            raise SimulationError(self)
        return self

    def of_kind(self, kind: str) -> list[Finding]:
        return [f for f in self.findings if f.kind == kind]

    @property
    def conflicts(self) -> int:
        """Bank conflicts of all shared accesses."""
        return sum(t.conflicts for t in self.accesses)

    @property
    def sectors(self) -> int:
        """32-byte sectors of global memory moved by all accesses."""
        return sum(t.sectors for t in self.accesses)

    def rows(self) -> list[tuple[str, ...]]:
        """The table of accesses as text cells, in program order."""
        ordered = sorted(self.accesses, key=lambda t: (t.site.line, t.site.number))
        return [
            (str(t.site.line), f"{t.site.what} {t.site.buffer}", *t.cells(), str(t.redundant or ""), t.site.text)
            for t in ordered
        ]

    def summary(self) -> str:
        x, y, z = self.grid
        a, b, c = self.block
        faults = f"{len(self.findings)} finding" + "s" * (len(self.findings) != 1) if self.findings else "no findings"
        return (
            f"{self.kernel}: grid ({x}, {y}, {z}), block ({a}, {b}, {c}), {self.shared_bytes} bytes of shared memory, "
            f"{self.barriers} barriers, {faults}"
        )

    def __str__(self) -> str:
        lines = [self.summary(), *(str(f) for f in self.findings)]
        if self.accesses:
            lines.append(text_table(_HEAD[:-1], [row[:-1] for row in self.rows()], _NUMBERS))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        faults = "".join(f'<pre style="color:{NO}">{html.escape(str(f))}</pre>' for f in self.findings)
        table = html_table(_HEAD, self.rows(), right=_NUMBERS, code=[len(_HEAD) - 1])
        return f"<p>{html.escape(self.summary())}</p>{faults}{table}"


class SimulationError(RunError):
    """A launch with findings; ``report`` is its SimReport."""

    def __init__(self, report: SimReport):
        self.report = report
        super().__init__("\n".join([report.summary(), *(str(f) for f in report.findings)]))


class Findings:
    """Collects findings; repeated errors between the same lines are counted."""

    def __init__(self) -> None:
        self.by_key: dict[Any, Finding] = {}

    def add(self, kind: str, message: str, accesses: tuple[Access, ...], count: int = 1) -> None:
        key = (kind, *(a.site.line for a in accesses), *(a.site.buffer for a in accesses))
        found = self.by_key.get(key)
        if found is not None:
            found.count += count
        elif len(self.by_key) < MAX_FINDINGS:
            self.by_key[key] = Finding(kind, message, accesses, count)
