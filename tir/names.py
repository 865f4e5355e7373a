"""Names that are not taken."""

from __future__ import annotations

from collections.abc import Container


def fresh(name: str, taken: Container[str]) -> str:
    """``name``, or the first of ``name_1``, ``name_2`` … that is not in ``taken``.

    >>> fresh("i", {"i", "i_1"})
    'i_2'
    """
    if name not in taken:
        return name
    number = 1
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"
