"""How deep the brackets of generated Python are nested: Python takes 200 of them in one another."""

from __future__ import annotations

_ROUND = bytes.maketrans(b"[]", b"()")
_OTHERS = bytes(set(range(256)) - set(b"()[]"))
_DEEP, _LONG = 60, 300  # shorter text has fewer brackets than that


def is_deep(text: str) -> bool:
    """Whether to name the value of an expression's text instead of nesting it in further text.

    >>> is_deep("(a + b)"), is_deep("((a + b) * c) + " * 60), is_deep("(" * 200 + "a" + ")" * 200)
    (False, False, True)
    """
    return len(text) >= _LONG and _depth(text) >= _DEEP


def _depth(text: str) -> int:
    brackets, depth = text.encode().translate(_ROUND, _OTHERS), 0
    while (without := brackets.replace(b"()", b"")) != brackets:  # the innermost ones
        brackets, depth = without, depth + 1
    return depth
