"""The result of a footprint: a row for each loop and the limits of the machine, as text, HTML and SVG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log2
from typing import Any

from ..display import FAINT, duration, html_table, svg_box, svg_figure, svg_text, text_table
from ..target import Target

LEVELS = ("registers", "L1", "L2", "L3")  # what holds data, nearest first; then memory
HEAD = ("loop", "runs", "touched", "reuse", "flops", "flops/byte", "held by")
NUMBERS = range(1, 6)  # the columns with numbers
INDENT = "\u00a0\u00a0"  # spaces that a picture keeps
COLOURS = {"registers": "#54a24b", "L1": "#4c78a8", "L2": "#9d7bb5", "L3": "#f2a241", "memory": "#d1495b"}
COLOURS["compute"] = "#54a24b"


@dataclass(frozen=True)
class Machine:
    """The limits of one core: ``sizes`` in bytes of :data:`LEVELS`, ``peak`` in operations and ``bandwidth`` in bytes a
    second; ``latency`` is the seconds until the result of a multiply-add can be used, ``gather`` those that
    an element of a gathered vector takes.

    ``bandwidth`` has the rates of L1, L2, L3 and memory.
    """

    sizes: Mapping[str, int]
    peak: float
    bandwidth: Mapping[str, float]
    latency: float = 4 / 3e9
    gather: float = 0.5 / 3e9

    @staticmethod
    def of(target: Any = None) -> Machine:
        """Sizes of ``target`` (attributes ``l1_bytes``, ``l2_bytes``, ``l3_bytes``, default: this machine's); rates of
        a core at 3 GHz with two vector units, whose results take four cycles: measure yours if it matters (``codegen.machine_peak``)."""
        where = Target.of(target)
        vectors = where.vectors
        bits = vectors.bits
        sizes = {"registers": vectors.count * bits // 8}
        for level in (1, 2, 3):
            sizes[f"L{level}"] = where.cache_bytes(level)
        clock, vector = 3e9, bits // 8
        bandwidth = {"L1": 2 * vector * clock, "L2": 48 * clock, "L3": 10 * clock, "memory": 4 * clock}
        return Machine(sizes, 2 * 2 * (bits // 32) * clock, bandwidth)


@dataclass(frozen=True)
class Level:
    """All iterations of one loop (``depth`` loops are around it, it is executed ``runs`` times).

    ``touched`` has the bytes by buffer name, ``moved`` the traffic from the level below into the caches in all
    executions, ``flops`` the arithmetic of one execution. ``var`` is the loop's variable.
    """

    name: str
    depth: int
    extent: int
    runs: int
    touched: Mapping[str, int]
    accessed: int
    flops: int
    holds: str
    var: Any = None

    @property
    def bytes(self) -> int:
        return sum(self.touched.values())

    @property
    def reuse(self) -> float:
        """Number of accesses per touched byte."""
        return self.accessed / self.bytes if self.bytes else 0.0

    @property
    def intensity(self) -> float:
        """Arithmetic intensity: operations per touched byte."""
        return self.flops / self.bytes if self.bytes else 0.0


@dataclass(frozen=True)
class Footprint:
    """The result of :func:`footprint`: ``rows`` from the outermost loop inwards, and the minimum total time.

    ``traffic`` has the bytes that come from each level (L1, L2, L3, memory); ``seconds`` the minimum time of these and
    of the arithmetic (``compute``). Shows as a table; ``svg()`` is the figure.
    """

    name: str
    rows: tuple[Level, ...]
    flops: int
    traffic: Mapping[str, int]
    machine: Machine

    @property
    def seconds(self) -> dict[str, float]:
        times = {"compute": self.flops / self.machine.peak}
        times.update({level: size / self.machine.bandwidth[level] for level, size in self.traffic.items()})
        return times

    @property
    def bottleneck(self) -> str:
        """``compute``, or the level whose data takes longest: ``L1``, ``L2``, ``L3``, ``memory``."""
        times = self.seconds
        return max(times, key=times.__getitem__)

    @property
    def bound(self) -> float:
        """Upper bound of the operations per second that the bottleneck allows."""
        longest = max(self.seconds.values())
        return self.flops / longest if longest else 0.0

    def __getitem__(self, loop: str) -> Level:
        """The row of the loop called ``loop``; raises ``KeyError`` that lists the existing loops."""
        found = [row for row in self.rows if row.name == loop]
        if not found:
            raise KeyError(f"no loop {loop!r}; there are {', '.join(row.name for row in self.rows)}")
        return found[0]

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    @property
    def roofline(self) -> dict[str, tuple[float, float]]:
        """For each level that data comes from: operations per byte of its traffic, and the operations per second that it
        allows, at most the peak. The least of these is ``bound``."""
        rates = self.machine.bandwidth
        found = {level: self.flops / size for level, size in self.traffic.items() if size}
        return {level: (each, min(each * rates[level], self.machine.peak)) for level, each in found.items()}

    def svg(self) -> str:
        """The loops' footprints against the caches, and the minimum time of each level, as an SVG figure."""
        return as_svg(self)

    def roofline_svg(self) -> str:
        """The roofline as an SVG figure, on logarithmic scales."""
        return roofline_figure(self)


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


def cells(row: Level) -> tuple[str, ...]:
    """One row of the table."""
    return (
        f"{'  ' * row.depth}{row.name} ({row.extent})",
        number(row.runs),
        number(row.bytes, "B"),
        f"{row.reuse:.3g}",
        number(row.flops),
        f"{row.intensity:.3g}",
        row.holds,
    )


def verdict(found: Footprint) -> str:
    """The bottleneck, in a sentence."""
    seconds, level = found.seconds, found.bottleneck
    what = "arithmetic" if level == "compute" else f"data from {level}"
    share = found.bound / found.machine.peak
    return (
        f"at least {duration(seconds[level], 3)}, bound by {what}: at most {number(found.bound, 'flop/s')}, "
        f"{100 * share:.0f} % of the peak"
    )


def bounds(found: Footprint) -> list[tuple[str, str, str]]:
    """(level, amount, least time) of the arithmetic and of the data from each level."""
    made = [("compute", number(found.flops, "flop"), duration(found.seconds["compute"], 3))]
    made += [(level, number(size, "B"), duration(found.seconds[level], 3)) for level, size in found.traffic.items()]
    return made


def as_text(found: Footprint) -> str:
    table = text_table(HEAD, map(cells, found.rows), NUMBERS)
    levels = [(*row, "<- bottleneck" if row[0] == found.bottleneck else "") for row in bounds(found)]
    return f"{found.name}: {verdict(found)}\n{table}\n\n{text_table((), levels, right=(1, 2))}"


def as_html(found: Footprint) -> str:
    table = html_table(HEAD, map(cells, found.rows), f"{found.name}: {verdict(found)}", right=NUMBERS)
    return f"{table}{as_svg(found)}{roofline_figure(found)}"


def as_svg(found: Footprint) -> str:
    """Above, one bar per loop: the bytes it touches, on a logarithmic scale with the cache sizes; below, the minimum
    time of the arithmetic and of the traffic from each level, the longest marked."""
    width, left, right, step = 720, 190, 90, 22
    sizes = [(level, found.machine.sizes[level]) for level in LEVELS if level in found.machine.sizes]
    top = max([row.bytes for row in found.rows] + [size for _, size in sizes[:-1]], default=1)
    span = width - left - right

    def place(size: float) -> float:
        return span * log2(max(size, 1)) / log2(max(top, 2) * 1.2)

    out = [svg_text(12, 22, f"{found.name}: {verdict(found)}", font_weight="bold")]
    y = 62
    end = y + step * len(found.rows)
    for level, size in sizes:
        if place(size) <= span:
            x = left + place(size)
            line = f'x1="{x:.1f}" x2="{x:.1f}" y1="{y - 8}" y2="{end}" stroke="{FAINT}" stroke-dasharray="3 3"'
            out += [f"<line {line}/>", svg_text(x, y - 12, f"{level} {number(size, 'B')}", "middle", font_size="10")]
    for row in found.rows:
        out.append(svg_text(12, y + 11, f"{INDENT * row.depth}{row.name} ({row.extent})"))
        out.append(svg_box(left, y, place(row.bytes), step - 8, COLOURS[row.holds], f"held by {row.holds}"))
        out.append(svg_text(left + place(row.bytes) + 6, y + 11, number(row.bytes, "B"), font_size="11"))
        y += step
    y += 34
    out.append(svg_text(12, y - 10, "least time", font_weight="bold"))
    longest = max(found.seconds.values()) or 1.0
    for level, amount, time in bounds(found):
        mine = level == found.bottleneck
        out.append(svg_text(12, y + 11, "arithmetic" if level == "compute" else f"data from {level}"))
        length = span * found.seconds[level] / longest * 0.55
        out.append(svg_box(left, y, length, step - 8, COLOURS[level] if mine else FAINT))
        words = f"{time}  ({amount})" + ("  bottleneck" if mine else "")
        out.append(svg_text(left + length + 6, y + 11, words, font_weight="bold" if mine else "normal"))
        y += step
    return svg_figure(width, y + 12, *out)


def roofline_figure(found: Footprint) -> str:
    """A roof for each level (its bandwidth, up to the peak) and the point on it at which the program stands."""
    places = found.roofline
    width, height, left, top = 720, 260, 80, 40
    peak, rates = found.machine.peak, {level: found.machine.bandwidth[level] for level in places}
    if not places or not found.flops:
        return svg_figure(width, 30, svg_text(12, 20, f"{found.name}: no arithmetic, so no roofline"))
    crossings = [peak / rate for rate in rates.values()]
    low = log2(min([each for each, _ in places.values()] + crossings) / 2)
    high = log2(max([each for each, _ in places.values()] + crossings) * 2)
    least = log2(min([allowed for _, allowed in places.values()] + [2**low * rate for rate in rates.values()]))
    span, most = width - left - 130, log2(peak) + 0.5

    def at(each: float, allowed: float) -> tuple[float, float]:
        x = left + span * (log2(each) - low) / (high - low)
        return x, top + height * (most - log2(allowed)) / (most - least)

    out = [svg_text(12, 22, f"{found.name}: roofline", font_weight="bold")]
    end = left + span
    for row, (level, rate) in enumerate(rates.items()):
        (x0, y0), (x1, y1) = at(2**low, 2**low * rate), at(peak / rate, peak)
        line = f'points="{x0:.1f},{y0:.1f} {x1:.1f},{y1:.1f} {end:.1f},{y1:.1f}"'
        out.append(f'<polyline {line} fill="none" stroke="{COLOURS[level]}" stroke-width="1.5"/>')
        x, y = at(*places[level])
        title = f"{level}: {number(places[level][0])} flop/byte, at most {number(places[level][1], 'flop/s')}"
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{COLOURS[level]}"><title>{title}</title></circle>')
        bold = "bold" if level == found.bottleneck else "normal"
        out.append(
            svg_text(
                x + 8,
                y + 14 + 12 * row,
                f"{level}  {number(places[level][1], 'flop/s')}",
                font_size="11",
                font_weight=bold,
            )
        )
    out.append(svg_text(end + 6, at(1, peak)[1] + 4, f"peak {number(peak, 'flop/s')}", font_size="11"))
    axis = top + height + 22
    for power in range(int(low), int(high) + 1, max(1, int(high - low) // 6)):
        out.append(svg_text(at(2.0**power, peak)[0], axis, f"{2.0**power:g}", "middle", font_size="10"))
    out.append(svg_text(left + span / 2, axis + 16, "flop/byte from this level", "middle", font_size="11"))
    return svg_figure(width, axis + 24, *out)
