"""``break``, ``continue`` and ``return`` as conditions: what follows a jump is put where no jump leads past it.

The dialect has structured control flow only. ``if a: continue`` makes the rest of the body the other branch of the ``if``;
where both branches may go on, a flag says whether one did. ``break`` also sets a flag that the loop asks before each
iteration, and ``return`` in a loop one that is asked after it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from copy import copy

from .scope import FLAG

_LOOPS = (ast.For, ast.While)
_CALLS = {"break_loop": ast.Break, "continue_loop": ast.Continue}
Jump = Callable[[ast.stmt], list[ast.stmt]]  # what is done in place of a jump, before the rest of the body is left out


class MisplacedJump(Exception):
    """A jump that no condition can stand for; ``node`` is the jump, ``around`` the statement that it would leave."""

    def __init__(self, node: ast.stmt, around: ast.stmt):
        super().__init__(node, around)
        self.node, self.around = node, around


def jumps_of_loop(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The ``break`` and ``continue`` of the loop with this body."""
    return [*_jumps(body, (ast.Break, ast.Continue))]


def without_loop_jumps(body: list[ast.stmt], going: str) -> list[ast.stmt]:
    """A loop's body without ``break`` and ``continue``; ``break`` sets the flag ``going`` to false.

    Raises ``MisplacedJump``.
    """
    return _structured(
        body,
        (ast.Break, ast.Continue),
        lambda jump: [set_flag(going, False, jump)] if construct(jump) is ast.Break else [],
    )


def without_returns(body: list[ast.stmt]) -> list[ast.stmt]:
    """A function's body without ``return`` that gives no value. Raises ``MisplacedJump``."""
    returns = [node for statement in body for node in ast.walk(statement) if _is_plain_return(node)]
    return _structured(_without_returns_of_loops(body), (ast.Return,), lambda jump: []) if returns else body


def _without_returns_of_loops(body: list[ast.stmt]) -> list[ast.stmt]:
    """``body`` whose loops end by ``break`` where they had ``return``, and are followed by a ``return`` of their own."""
    out: list[ast.stmt] = []
    for node in body:
        if not any(_is_plain_return(inner) for inner in ast.walk(node)):
            out.append(node)
        elif isinstance(node, ast.If):
            parts = (_without_returns_of_loops(part) for part in (node.body, node.orelse))
            out.append(ast.copy_location(ast.If(node.test, *parts), node))
        elif isinstance(node, _LOOPS):
            left = flag("left", node)
            leave: Jump = lambda jump, left=left: [set_flag(left, True, jump), ast.copy_location(ast.Break(), jump)]  # noqa: E731
            at = next(inner for inner in ast.walk(node) if isinstance(inner, ast.Return) and _is_plain_return(inner))
            returned = ast.If(read_flag(left, at), [ast.copy_location(ast.Return(), at)], [])
            loop = copy(node)
            loop.body = _replaced(_without_returns_of_loops(node.body), leave)
            out += [set_flag(left, False, node), loop, ast.copy_location(returned, at)]
        else:
            out.append(node)
    return out


def _replaced(body: list[ast.stmt], leave: Jump) -> list[ast.stmt]:
    """``body`` with ``leave`` of each ``return``, which stands in branches only."""
    out: list[ast.stmt] = []
    for node in body:
        if isinstance(node, ast.If):
            parts = (_replaced(part, leave) for part in (node.body, node.orelse))
            node = ast.copy_location(ast.If(node.test, *parts), node)
        out += leave(node) if _is_plain_return(node) else [node]
    return out


def construct(node: ast.AST) -> type:
    """The kind of statement that ``node`` is: TVM's ``T.continue_loop()`` and ``T.break_loop()`` are jumps."""
    call = node.value if isinstance(node, ast.Expr) else None
    while isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        if call.func.attr in _CALLS and not call.args:
            return _CALLS[call.func.attr]
        call = call.args[0] if call.func.attr == "evaluate" and len(call.args) == 1 else None
    return type(node)


def flag(name: str, at: ast.stmt) -> str:
    """The name of a flag for the statement ``at``; no program has such names."""
    return f"{FLAG}{name}{FLAG}{at.lineno}:{at.col_offset}"


def set_flag(name: str, value: bool, at: ast.stmt) -> ast.stmt:
    made = ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value))
    for node in ast.walk(made):
        ast.copy_location(node, at)
    return made


def read_flag(name: str, at: ast.stmt) -> ast.expr:
    return ast.copy_location(ast.Name(name, ast.Load()), at)


def _is_plain_return(node: ast.AST) -> bool:
    return isinstance(node, ast.Return) and node.value is None


def _is_jump(node: ast.AST, kinds: tuple[type, ...]) -> bool:
    return construct(node) in kinds and (_is_plain_return(node) or not isinstance(node, ast.Return))


def _jumps(body: Sequence[ast.stmt], kinds: tuple[type, ...]) -> Iterator[ast.stmt]:
    """The jumps in ``body``: of the loop around it, not of loops in it."""
    for node in body:
        if _is_jump(node, kinds):
            yield node
        elif isinstance(node, _LOOPS) and ast.Return not in kinds:
            yield from _jumps(node.orelse, kinds)
        elif not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            for part in ("body", "orelse"):
                yield from _jumps(getattr(node, part, ()), kinds)


def _ends(body: Sequence[ast.stmt], kinds: tuple[type, ...]) -> bool:
    """Whether ``body`` always ends with a jump."""
    return any(
        _is_jump(s, kinds) or (isinstance(s, ast.If) and _ends(s.body, kinds) and _ends(s.orelse, kinds)) for s in body
    )


def _structured(body: list[ast.stmt], kinds: tuple[type, ...], done: Jump) -> list[ast.stmt]:
    """``body`` without jumps: ``done`` gives what is done in place of each."""
    go = lambda part: _structured(part, kinds, done)  # noqa: E731
    for number, node in enumerate(body):
        before, rest = body[:number], body[number + 1 :]
        if _is_jump(node, kinds):
            return [*before, *done(node)]
        inner = next(_jumps([node], kinds), None)
        if inner is None:
            continue
        if not isinstance(node, ast.If):
            raise MisplacedJump(inner, node)
        if _ends(node.body, kinds):
            return [*before, _branches(node, go(node.body), go([*node.orelse, *rest]))]
        if _ends(node.orelse, kinds):
            return [*before, _branches(node, go([*node.body, *rest]), go(node.orelse))]
        if not rest:
            return [*before, _branches(node, go(node.body), go(node.orelse))]
        name = flag("goes_on", node)
        leave: Jump = lambda jump, name=name: [set_flag(name, False, jump), *done(jump)]  # noqa: E731
        parts = [_structured(part, kinds, leave) for part in (node.body, node.orelse)]
        guarded = ast.copy_location(ast.If(read_flag(name, node), go(rest), []), rest[0])
        return [*before, set_flag(name, True, node), _branches(node, *parts), guarded]
    return body


def _branches(node: ast.If, body: list[ast.stmt], orelse: list[ast.stmt]) -> ast.stmt:
    nothing: list[ast.stmt] = [ast.copy_location(ast.Pass(), node)]
    return ast.copy_location(ast.If(node.test, body or nothing, orelse), node)
