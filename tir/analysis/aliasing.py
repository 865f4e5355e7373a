"""Whether different pointers of a function may lead to the same memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..buffer import Buffer, MatchBufferRegion
from ..errors import require
from ..expr import Var
from ..function import PrimFunc
from ..node import Memo, frozendict
from ..stmt import Block
from ..visit import substitute, walk
from .effects import effects
from .index import BlockRef, Place


def second_names(place: Place) -> dict[Var, MatchBufferRegion]:
    """The views of the blocks around ``place`` and of itself, by pointer, if one of these blocks has two names for some
    memory: then pointers do not tell memory apart."""
    blocks = [p.block for p in (place, *place.ancestors()) if isinstance(p, BlockRef)]
    if not any(is_named_twice(b) for b in blocks if b.match_buffers):
        return {}
    return {m.buffer.data: m for b in blocks for m in b.match_buffers}


def is_named_twice(block: Block) -> bool:
    """Whether the body of ``block`` uses some memory by two names, because of its views."""
    if not block.match_buffers:
        return False
    views = {m.buffer.data: m for m in block.match_buffers}
    used = {b.data for b in _used(block)}
    return len({_behind(views, p) for p in used}) < len(used)


def other_name(scope: BlockRef, buffer: Buffer) -> Buffer | None:
    """Another buffer by which the body of ``scope`` uses the memory of ``buffer``, because of views; None if none does."""
    views = second_names(scope)
    source = _behind(views, buffer.data)
    others = (b for b in _used(scope.block) if b.data is not buffer.data) if views else ()
    return next((b for b in others if _behind(views, b.data) is source), None)


def _used(block: Block) -> list[Buffer]:
    return [e.buffer for part in (block.init, block.body) if part is not None for e in effects(part)]


def _behind(views: Mapping[Var, MatchBufferRegion], pointer: Var) -> Var:
    """The pointer of the memory that ``pointer`` leads to."""
    while pointer in views:
        pointer = views[pointer].source.buffer.data
    return pointer


# ---------------------------------------------------------------- parameters that may overlap


def with_one_memory(func: PrimFunc) -> PrimFunc:
    """``func`` with one pointer for all parameters, if ``tir.noalias`` is false: buffers are of the same memory exactly if
    they have the same pointer, and of that of two buffers nothing is known. Itself for another function.

    Raises ``ScheduleError`` if it uses the pointers of two parameters: they would no longer be told apart.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     T.func_attr({"tir.noalias": False})
    ...     B[0] = A[0]
    ... ''')
    >>> one = with_one_memory(f)
    >>> len({b.data for b in f.buffers()}), len({b.data for b in one.buffers()})
    (2, 1)
    >>> with_own_memory(one).buffers() == f.buffers()
    True
    """
    if func.attrs.get("tir.noalias", True) or len({b.data for b in func.buffers()}) < 2:
        return func
    found = _ONE.get(func)
    if found is None:
        passed = _passed_on(func)
        require(
            len(passed) < 2,
            'the parameters of {0} may overlap ("tir.noalias" is False), and it uses the pointers of {1}',
            func.name,
            lambda: " and ".join(f"`{b.name}`" for b in passed),
            legal="T.address_of(B[…]) in place of B.data",
        )
        shared = (passed or func.buffers())[0].data
        found = _ONE[func] = _renamed(func, dict.fromkeys(func.buffer_map, shared))
        _SEVERAL[found] = func
        for param, buffer in func.buffer_map.items():
            _POINTER[param] = buffer.data
    return found


def with_own_memory(func: PrimFunc) -> PrimFunc:
    """The function, or a later version of it, of which :func:`with_one_memory` has made ``func``: each parameter has a
    pointer of its own again. Itself for another function."""
    if func.attrs.get("tir.noalias", True):
        return func
    found = _SEVERAL.get(func)
    if found is None:
        pointers = {p: b.data for p, b in func.buffer_map.items()}
        pointers.update((p, own) for p in pointers if (own := _POINTER.get(p)) is not None)
        found = _SEVERAL[func] = _renamed(func, pointers)
    return found


_ONE: Memo[PrimFunc] = Memo()
_SEVERAL: Memo[PrimFunc] = Memo()
_POINTER: Memo[Var] = Memo()  # of a parameter, that of its buffer in the function as it was given


def _passed_on(func: PrimFunc) -> list[Buffer]:
    """The parameters of which the body uses the pointer, or another buffer with that pointer."""
    own = func.buffers()
    items = {n for n in walk(func.body) if isinstance(n, (Var, Buffer))}
    pointers = {n.data if isinstance(n, Buffer) else n for n in items if n not in own}
    return [b for b in own if b.data in pointers]


def _renamed(func: PrimFunc, pointers: Mapping[Var, Var]) -> PrimFunc:
    """``func`` with these ``pointers`` of the buffers of its parameters."""
    changed: dict[Buffer, Buffer] = {}
    for param, buffer in func.buffer_map.items():
        if buffer.data is not pointers[param]:
            twin = _TWIN.get(buffer)
            if twin is None or twin.data is not pointers[param]:
                twin = buffer.replace(data=pointers[param])
                _TWIN[buffer], _TWIN[twin] = twin, buffer
            changed[buffer] = twin
    parameters = frozendict({p: changed.get(b, b) for p, b in func.buffer_map.items()})
    return func.replace(body=substitute(func.body, {}, changed), buffer_map=parameters) if changed else func


_TWIN: Memo[Buffer] = Memo()  # of a parameter with its own pointer, the one with that of all; and back


def is_same_parameter(a: Buffer, b: Buffer) -> bool:
    """Whether two buffers are one, or are one parameter, by its own pointer and by that of all."""
    return a is b or _TWIN.get(a) is b


def same_nodes(func: PrimFunc, other: PrimFunc, nodes: Sequence[Any]) -> list[Any]:
    """What ``nodes`` of ``func`` are in ``other``, which is it :func:`with_own_memory` or :func:`with_one_memory`."""
    same = {} if other is func else dict(zip(walk(func.body), walk(other.body)))
    return [same.get(n, n) for n in nodes]
