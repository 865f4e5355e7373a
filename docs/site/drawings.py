"""What a primitive does, as a drawing: the loop nest before and after, and the difference of the programs, of a golden
case run anew."""

from __future__ import annotations

import html
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import golden_cases

import tir
from tir.notebook.loop_tree import before_and_after


@cache
def _cases() -> dict[str, list[dict[str, str]]]:
    """The accepted cases of each primitive without overrides, those that begin with the most usual program first."""
    found: dict[str, list[dict[str, str]]] = {}
    for path in golden_cases.CASES:
        sections = golden_cases.read(path)
        if "after" in sections and "unsafe=" not in sections["steps"]:
            found.setdefault(path.parent.name, []).append(sections)
    usual = Counter(golden_cases.program_of(sections) for cases in found.values() for sections in cases)
    for cases in found.values():
        cases.sort(key=lambda s: (s["steps"].count("\n"), s["steps"].count("="), -usual[golden_cases.program_of(s)]))
    return found


@cache
def example_of(primitive: str) -> tuple[str, tir.Schedule] | None:
    """The steps and the schedule of the plainest case in which the primitive changes the shape of the loop nest; if none
    does, in which it changes the program."""
    changed = None
    for steps, sch in runs_of(primitive):
        if changes_nest(sch):
            return steps, sch
        if changed is None and sch.mod is not sch.history[0].mod:
            changed = steps, sch
    return changed


def runs_of(primitive: str) -> Iterator[tuple[str, tir.Schedule]]:
    """The steps and the schedules of the accepted cases of a primitive, the plainest first."""
    for case in _cases().get(primitive, []):
        yield case["steps"], golden_cases.perform(golden_cases.program_of(case), case["steps"])[0]


def changes_nest(sch: tir.Schedule) -> bool:
    """Whether loops and blocks are others than at the start, whatever they are called."""
    before, after = (
        [(row.is_block and row.regions, row.depth, row.kind, row.extent) for row in sch.loop_tree(step=step).rows]
        for step in (0, -1)
    )
    return before != after


def drawing(primitive: str) -> str:
    """The drawing as HTML; empty for a primitive that changes no program by itself."""
    example = example_of(primitive)
    if example is None:
        return ""
    steps, sch = example
    shown = [f"<p><code>{html.escape(steps).replace(chr(10), '<br/>')}</code></p>"]
    if changes_nest(sch):
        shown.append(before_and_after(sch.loop_tree(step=0), sch.loop_tree()))
    changed = sch.diff(color=False)._repr_html_()  # pyright: ignore[reportAttributeAccessIssue]
    shown.append(f"<details><summary>the program</summary>{changed}</details>")
    return f'<div class="tir-figure">{"".join(shown)}</div>'
