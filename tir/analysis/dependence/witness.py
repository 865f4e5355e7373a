"""The proof shown in a refusal: two instances, and the element on which they conflict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...expr import BufferLoad
from ...poly import Relation
from ...visit import contains
from .relations import why_inexact
from .statements import Access, Statement


def witness(pairs: Relation, s: Any, a: Any, t: Any, b: Any, late: str, early: str) -> list[str]:
    """Lines on one of ``pairs`` of instances of ``s`` and ``t``, which conflict by their accesses ``a`` and ``b``:
    the second's first."""
    found = pairs.sample()
    if found is None:
        return []
    x, y = found
    element = _shared_element(a, b, x, y)
    names = dict.fromkeys(f"`{c.access.buffer.name}`" for c in (b, a))
    same = [] if a.access.buffer is b.access.buffer else [f"{' and '.join(names)} may be the same memory"]
    return [
        f"{t.show(y)} {_verb(t.unit, b.access)} {show_element(b.access, element)}{early}",
        f"{s.show(x)} {_verb(s.unit, a.access)} {show_element(a.access, element)}{late}",
        *same,
    ]


def why_unknown(sides: Sequence[tuple[Statement, Access]]) -> str | None:
    """Why it is not known which elements the accesses touch; None if it is."""
    for unit, access in sides:
        if access.indices is None:
            return f"what is done behind a pointer to `{access.buffer.name}` is not known"
        reason = why_inexact(unit, access)
        if reason is not None:
            of_data = contains(BufferLoad, reason.expr)
            return f"`{reason.expr!r}` depends on data" if of_data else str(reason)
    return None


def show_element(access: Access, element: Sequence[int]) -> str:
    inside = ", ".join(str(v) for v in element) if element else "…"
    return f"{access.buffer.name}[{inside}]"


def _verb(unit: Statement, access: Access) -> str:
    """What an access does to an element, as far as is known."""
    if access.indices is None or why_inexact(unit, access) is not None:
        return "may write" if access.write else "may read"
    return "writes" if access.write else "reads"


def _shared_element(a: Any, b: Any, x: Sequence[int], y: Sequence[int]) -> list[int]:
    if a.access.buffer is not b.access.buffer:
        return []
    return a.map.at(x).intersect(b.map.at(y)).sample() or []
