"""The plan of a program's shared memory, as text and as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..display import html_table, svg_box, svg_figure, svg_text, text_table

HEAD = ("kernel", "buffer", "scope", "bytes", "lifetime", "offset")
NUMBERS = (0, 3, 5)  # the columns with numbers
COLOURS = ("#4c78a8", "#54a24b", "#b7791f", "#9d7bb5", "#d1495b", "#1b8a9e")
_HEIGHT, _WIDTH, _STEP = 200, 620, 46  # pixels: of all bytes of a scope, of a kernel, and of a statement at most


@dataclass(frozen=True)
class PlannedBuffer:
    """``bytes`` of shared memory from ``offset`` on, in use from statement ``first`` to ``last`` of the kernel."""

    kernel: int
    name: str
    scope: str
    bytes: int
    first: int
    last: int
    offset: int


class SharedMemoryPlan(tuple[PlannedBuffer, ...]):
    """The planned buffers of a program's kernels, in order of their first use; prints as a table, shows as a figure
    (``svg()``).

    >>> import tir
    >>> plan = tir.transform.shared_memory_plan(tir.library.rows.row_sum(4, 8))
    >>> plan, plan.svg().startswith("<svg")
    (no shared memory, True)
    """

    def __repr__(self) -> str:
        return text_table(HEAD, self._rows(), NUMBERS) if self else "no shared memory"

    def _repr_html_(self) -> str:
        return html_table(HEAD, self._rows(), right=NUMBERS) + self.svg() if self else "<p>no shared memory</p>"

    def _rows(self) -> list[tuple[str, ...]]:
        return [(str(b.kernel), b.name, b.scope, str(b.bytes), f"{b.first}..{b.last}", str(b.offset)) for b in self]

    def total(self, kernel: int = 0, scope: str | None = None) -> int:
        """Bytes that a kernel needs, of one scope or of both."""
        return max((b.offset + b.bytes for b in self if b.kernel == kernel and scope in (None, b.scope)), default=0)

    def svg(self) -> str:
        """For each kernel and scope, time to the right (statements of the kernel) and bytes downwards: a box for each
        buffer. Boxes below each other are in use at the same time; boxes side by side share bytes."""
        parts: list[str] = []
        top = 20.0
        for kernel, scope in dict.fromkeys((b.kernel, b.scope) for b in self):
            mine = [b for b in self if (b.kernel, b.scope) == (kernel, scope)]
            total = self.total(kernel, scope)
            separate = sum(b.bytes for b in mine)
            parts.append(
                svg_text(
                    8, top, f"kernel {kernel}, {scope}: {total} B ({separate} B without reuse)", font_weight="bold"
                )
            )
            parts += _boxes(mine, total, top + 14)
            top += _HEIGHT + 54
        return svg_figure(_WIDTH + 100, top, *parts)


def _boxes(buffers: Sequence[PlannedBuffer], total: int, top: float) -> list[str]:
    """The buffers of one scope, and the statements as an axis below."""
    made: list[str] = []
    last = max(b.last for b in buffers)
    step = min(_STEP, _WIDTH / (last + 1))
    for n, b in enumerate(buffers):
        x, y = 60 + step * b.first, top + _HEIGHT * b.offset / max(total, 1)
        width, height = step * (b.last - b.first + 1) - 2, _HEIGHT * b.bytes / max(total, 1) - 1
        what = f"{b.name}: {b.bytes} B at {b.offset}, statements {b.first} to {b.last}"
        made.append(svg_box(x, y, width, height, COLOURS[n % len(COLOURS)], what, opacity="0.75"))
        made.append(svg_text(x + 4, y + min(height - 2, 14), f"{b.name} {b.bytes} B", font_size="11"))
        made.append(svg_text(54, y + 10, str(b.offset), "end", font_size="10"))
    every = max(1, round(20 / step))
    for n in range(0, last + 1, every):
        made.append(svg_text(60 + step * (n + 0.5), top + _HEIGHT + 14, str(n), "middle", font_size="10"))
    return made
