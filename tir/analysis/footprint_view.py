"""A footprint as text, HTML and SVG."""

from __future__ import annotations

from html import escape
from math import log2

from .footprint import LEVELS, Footprint, Level

HEAD = ("loop", "runs", "touched", "reuse", "flops", "flops/byte", "held by")
INDENT = "\u00a0\u00a0"  # spaces that a picture keeps
COLOURS = {"registers": "#54a24b", "L1": "#4c78a8", "L2": "#9d7bb5", "L3": "#f2a241", "memory": "#d1495b"}
COLOURS["compute"] = "#54a24b"


def number(value: float, unit: str = "") -> str:
    """With three digits and an SI prefix.

    >>> number(1536000, "B"), number(12, "B")
    ('1.54 MB', '12 B')
    """
    for prefix in ("", "k", "M", "G", "T"):
        if abs(value) < 1000 or prefix == "T":
            break
        value /= 1000
    return f"{value:.3g} {prefix}{unit}".strip()


def duration(seconds: float) -> str:
    """
    >>> duration(0.00215)
    '2.15 ms'
    """
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def cells(row: Level) -> tuple[str, ...]:
    """One row of the table."""
    return (
        f"{'  ' * row.depth}{row.name} ({row.extent})", number(row.runs), number(row.bytes, "B"), f"{row.reuse:.3g}",
        number(row.flops), f"{row.intensity:.3g}", row.holds,
    )  # fmt: skip


def verdict(print_: Footprint) -> str:
    """The bottleneck, in a sentence."""
    seconds, level = print_.seconds, print_.bottleneck
    what = "arithmetic" if level == "compute" else f"data from {level}"
    share = print_.bound / print_.machine.peak
    return (
        f"at least {duration(seconds[level])}, bound by {what}: at most {number(print_.bound, 'flop/s')}, "
        f"{100 * share:.0f} % of the peak"
    )


def bounds(print_: Footprint) -> list[tuple[str, str, str]]:
    """(level, amount, least time) of the arithmetic and of the data from each level."""
    made = [("compute", number(print_.flops, "flop"), duration(print_.seconds["compute"]))]
    made += [(level, number(size, "B"), duration(print_.seconds[level])) for level, size in print_.traffic.items()]
    return made


def as_text(print_: Footprint) -> str:
    rows = [HEAD, *map(cells, print_.rows)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(HEAD))]

    def line(row: tuple[str, ...]) -> str:
        first, *rest = (cell.ljust(w) if k in (0, 6) else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths)))
        return "  ".join([first, *rest]).rstrip()

    out = [f"{print_.name}: {verdict(print_)}", *map(line, rows), ""]
    for level, amount, time in bounds(print_):
        mark = "  <- bottleneck" if level == print_.bottleneck else ""
        out.append(f"{level:<8} {amount:>12} {time:>10}{mark}")
    return "\n".join(out)


def as_html(print_: Footprint) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in HEAD)
    body = []
    for row in print_.rows:
        name, *rest = cells(row)
        indent = f'<td style="text-align:left;padding-left:{row.depth + 0.5}em">{escape(name.strip())}</td>'
        body.append(f"<tr>{indent}{''.join(f'<td>{escape(cell)}</td>' for cell in rest)}</tr>")
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    return f"<p><b>{escape(print_.name)}</b>: {escape(verdict(print_))}</p>{table}{as_svg(print_)}"


def as_svg(print_: Footprint) -> str:
    """Above, one bar per loop: the bytes it touches, on a logarithmic scale with the cache sizes; below, the minimum
    time of the arithmetic and of the traffic from each level, the longest marked."""
    width, left, right, step = 720, 190, 90, 22
    sizes = [(level, print_.machine.sizes[level]) for level in LEVELS if level in print_.machine.sizes]
    top = max([row.bytes for row in print_.rows] + [size for _, size in sizes[:-1]], default=1)
    span = width - left - right
    out: list[str] = []

    def text(x: float, y: float, words: str, anchor: str = "start", extra: str = "") -> None:
        out.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{escape(words)}</text>')

    def bar(y: float, length: float, colour: str) -> None:
        out.append(f'<rect x="{left}" y="{y:.1f}" width="{max(length, 1):.1f}" height="{step - 8}" fill="{colour}"/>')

    def place(size: float) -> float:
        return span * log2(max(size, 1)) / log2(max(top, 2) * 1.2)

    text(12, 22, f"{print_.name}: {verdict(print_)}", extra=' font-weight="bold"')
    y = 62
    end = y + step * len(print_.rows)
    for level, size in sizes:
        if place(size) <= span:
            x = left + place(size)
            out.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y - 8}" y2="{end}" stroke="#999" stroke-dasharray="3 3"/>'
            )
            text(x, y - 12, f"{level} {number(size, 'B')}", "middle", ' fill="#555" font-size="10"')
    for row in print_.rows:
        text(12, y + 11, f"{INDENT * row.depth}{row.name} ({row.extent})")
        bar(y, place(row.bytes), COLOURS[row.holds])
        text(left + place(row.bytes) + 6, y + 11, number(row.bytes, "B"), extra=' fill="#333" font-size="11"')
        y += step
    y += 34
    text(12, y - 10, "least time", extra=' font-weight="bold"')
    longest = max(print_.seconds.values()) or 1.0
    for level, amount, time in bounds(print_):
        mine = level == print_.bottleneck
        text(12, y + 11, "arithmetic" if level == "compute" else f"data from {level}")
        length = span * print_.seconds[level] / longest * 0.55
        bar(y, length, COLOURS[level] if mine else "#bbb")
        words = f"{time}  ({amount})" + ("  bottleneck" if mine else "")
        text(left + length + 6, y + 11, words, extra=' font-weight="bold"' if mine else ' fill="#333"')
        y += step
    style = 'font-family="sans-serif" font-size="12"'
    box = f'viewBox="0 0 {width} {y + 12}" width="{width}" height="{y + 12}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} {style}>'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(out)}</svg>'
    )
