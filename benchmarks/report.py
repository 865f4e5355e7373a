"""The results as a table, as Markdown and as an SVG chart."""

from __future__ import annotations

import math
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from tir.display import duration, text_table

Row = dict[str, Any]
COLOURS = {
    "NumPy": "#4c78a8",
    "OpenBLAS SkylakeX": "#9d7bb5",
    "torch": "#d1495b",
    "numba": "#54a24b",
    "Halide": "#f2a241",
    "limit": "#333",
}


def columns(rows: Sequence[Row]) -> list[str]:
    """The peers that occur in any row, in the order of :data:`COLOURS`."""
    return [name for name in COLOURS if any(name in row["ratio"] for row in rows)]


def cells(row: Row, peers: Iterable[str]) -> list[str]:
    unit = "GFLOP/s" if row["unit"] == "flops" else "GB/s"
    share = f"{row['share']:.2f}" if row["share"] else ""
    return [
        row["work"],
        str(row["threads"]),
        duration(row["seconds"]["ours"], 3),
        f"{row['rate']:.3g} {unit}",
        share,
        *(f"{row['ratio'][p]:.2f}" if p in row["ratio"] else "" for p in peers),
        f"{row['schedule_s'] * 1e3:.0f}",
        f"{row['build_s'] * 1e3:.0f}",
        f"{row['scratch'] / 1024:.0f}",
    ]


def head(peers: Iterable[str]) -> list[str]:
    return ["work", "threads", "ours", "rate", "of limit", *peers, "schedule ms", "build ms", "scratch KiB"]


def as_text(rows: Sequence[Row]) -> str:
    peers = columns(rows)
    names = head(peers)
    return text_table(names, [cells(row, peers) for row in rows], right=range(1, len(names)))


def as_markdown(rows: Sequence[Row]) -> str:
    peers = columns(rows)
    lines = ["| " + " | ".join(line) + " |" for line in (head(peers), *(cells(row, peers) for row in rows))]
    lines.insert(1, "|" + "---|" * len(head(peers)))
    return "\n".join(lines)


def means(rows: Sequence[Row]) -> list[tuple[str, str, float, int]]:
    """(kind and threads, peer or limit, geometric mean of the ratios, their number)."""
    made = []
    for group in dict.fromkeys((row["kind"], row["threads"]) for row in rows):
        mine = [row for row in rows if (row["kind"], row["threads"]) == group]
        named = [(peer, [row["ratio"][peer] for row in mine if peer in row["ratio"]]) for peer in columns(mine)]
        for name, values in [("limit", [row["share"] for row in mine if row["share"]]), *named]:
            if values:
                label = f"{group[0]}, {group[1]} thread{'s' * (group[1] > 1)}"
                made.append((label, name, statistics.geometric_mean(values), len(values)))
    return made


def machine() -> str:
    """The CPU's name and how many cores this process may use."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        name = found[0] if found else name
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{name}, {cores} cores"


def as_svg(rows: Sequence[Row]) -> str:
    """A row for each work: our speed relative to each peer, on a logarithmic scale; the long line marks 1."""
    step, left, width, top = 16, 300, 900, 54
    span = width - left - 40
    height = top + step * len(rows) + 20

    def place(ratio: float) -> float:
        return left + span * (math.log2(min(max(ratio, 0.25), 8.0)) + 2) / 5

    out = [f'<rect width="{width}" height="{height}" fill="white"/>']

    def text(x: float, y: float, words: str, extra: str = "") -> None:
        out.append(f'<text x="{x:.0f}" y="{y:.0f}" {extra}>{escape(words)}</text>')

    text(12, 18, "times as fast as", 'font-weight="bold"')
    x = 130
    for name in [*columns(rows), "limit"]:
        out.append(f'<circle cx="{x}" cy="14" r="5" fill="{COLOURS[name]}"/>')
        text(x + 9, 18, "the machine's limit" if name == "limit" else name)
        x += 24 + 7 * len(name)
    for tick in (0.25, 0.5, 1, 2, 4, 8):
        colour = "#000" if tick == 1 else "#ccc"
        at = place(tick)
        out.append(f'<line x1="{at:.0f}" x2="{at:.0f}" y1="{top - 8}" y2="{height - 16}" stroke="{colour}"/>')
        text(at, top - 12, f"{tick:g}", 'text-anchor="middle" fill="#555"')
    for k, row in enumerate(rows):
        y = top + step * k + 8
        text(12, y + 4, f"{row['work']}, {row['threads']} thread{'s' * (row['threads'] > 1)}")
        marks = {**row["ratio"], **({"limit": row["share"]} if row["share"] else {})}
        for name, ratio in marks.items():
            out.append(
                f'<circle cx="{place(ratio):.1f}" cy="{y}" r="4.5" fill="{COLOURS[name]}" fill-opacity="0.8">'
                f"<title>{escape(name)}: {ratio:.2f}</title></circle>"
            )
    style = 'font-family="sans-serif" font-size="11"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f"{style}>{''.join(out)}</svg>"
    )
