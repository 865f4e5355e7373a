"""Values that an expression uses many times, bound to variables.

A pass visits an expression once for each use of it: a chain of values of which each uses the one before twice takes time that doubles with
each. Bound by ``let``, each is there once.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..analysis.evaluation import evaluated_parts, is_lazy
from ..expr import Expr, Let, Reduce, Var
from ..visit import LEAVES, is_pure

MANY = 65536  # nodes that a pass visits in a tenth of a second: below, indices, sums and products as they are give simpler regions and patterns


def bound_once(e: Expr) -> Expr:
    """``e`` with the values bound that it uses several times, if that makes it much smaller.

    Only what is evaluated whenever ``e`` is gets bound around it, so that no load moves out of the condition it is under; the parts of
    choices are expressions of their own. What is inside of a reduction or under a ``let`` stays there.

    >>> from tir import Var
    >>> x = Var("x", "float32")
    >>> for _ in range(60):
    ...     x = x * x + x
    >>> bound_once(x).value
    x * x + x
    """
    order = _parts_first(e)
    sizes: dict[Any, int] = {}
    uses: Counter[Any] = Counter()
    for node in order:
        parts = [] if type(node) in LEAVES else node.children()
        sizes[node] = 1 + sum(sizes[part] for part in parts)
        uses.update(parts)
    if sizes[e] < max(MANY, 2 * len(order)):
        return e
    always, new, bound = _always(e), dict[Any, Any](), list[tuple[Var, Expr]]()
    for node in order:
        later = {part for part, condition in evaluated_parts(node) if condition is not None} if is_lazy(node) else ()
        made = (
            node if type(node) in LEAVES else node.map_children(lambda p: bound_once(new[p]) if p in later else new[p])
        )
        if uses[node] > 1 and sizes[node] > 1 and node in always and isinstance(made, Expr) and is_pure(made):
            var = Var(f"v{len(bound)}", made.dtype)
            bound.append((var, made))
            made = var
        new[node] = made
    body = new[e]
    for var, value in reversed(bound):
        body = Let(var, value, body)
    return body


def _parts_first(root: Any) -> list[Any]:
    """Each node under ``root`` once, after those below it."""
    found: dict[Any, None] = {}
    stack = [(root, False)]
    while stack:
        node, parts_are_found = stack.pop()
        if parts_are_found or type(node) in LEAVES:
            found.setdefault(node)
        elif node not in found:
            stack.append((node, True))
            stack += [(part, False) for part in node.children()]
    return list(found)


def _always(root: Any) -> set[Any]:
    """The nodes under ``root`` that are evaluated whenever it is."""
    found = {root}
    stack = [root]
    while stack:
        node = stack.pop()
        if type(node) is Let:
            parts = [node.value]
        elif type(node) in LEAVES or type(node) is Reduce:
            parts = []
        else:
            parts = [part for part, condition in evaluated_parts(node) if condition is None]
        stack += [part for part in parts if part not in found]
        found.update(parts)
    return found
