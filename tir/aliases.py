"""Memory as alias classes: which names are of one memory, and what a store to one of them may change.

Buffers with one pointer (``data``) are of one memory. Pointers tell memory apart, but for those that :func:`other_names` and
:func:`overlapping` give: views, pointer variables, and parameters that may overlap.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from .buffer import Buffer, MatchBufferRegion
from .errors import ScheduleError, require
from .expr import BufferLoad, Call, Expr, IntImm, Ramp, Var, is_const
from .function import PrimFunc
from .node import Memo, frozendict
from .op import effect_of
from .stmt import Block, BufferStore, LetStmt
from .visit import LEAVES, Somewhere, has_load, nodes_of, rewrite_statements, substitute, walk

Item = TypeVar("Item")
Memory = Buffer | Container[Var]  # that of a buffer, or of several, by their pointers
Views = Mapping[Var, MatchBufferRegion]  # by the pointer of the view


def shares_memory(item: Any, memory: Memory) -> bool:
    """Whether ``item``, a buffer or what has one (an access, an effect, a region), is of ``memory``.

    >>> import tir
    >>> A = tir.decl_buffer((8,), "float32", "A")
    >>> row = tir.decl_buffer((4,), "float32", "row", data=A.data)
    >>> shares_memory(row, A), shares_memory(tir.decl_buffer((8,)), A), shares_memory(row[0], {A.data})
    (True, False, True)
    """
    pointer = item.data if type(item) is Buffer else item.buffer.data
    return pointer is memory.data if isinstance(memory, Buffer) else pointer in memory


def sharing(items: Iterable[Item], memory: Memory) -> list[Item]:
    """The ``items`` for which :func:`shares_memory` holds."""
    pointers = {memory.data} if isinstance(memory, Buffer) else memory
    return [i for i in items if (i.data if type(i) is Buffer else i.buffer.data) in pointers]


def memory_of(items: Iterable[Any]) -> frozenset[Var]:
    """The memory of buffers, and of what has one."""
    return frozenset([i.data if type(i) is Buffer else i.buffer.data for i in items])


def views_in(blocks: Iterable[Any]) -> Views:
    """The views that ``blocks`` make, by their pointers; later ones in place of earlier ones."""
    return {m.buffer.data: m for b in blocks for m in b.match_buffers}


def source_of(buffer: Buffer, views: Views) -> Buffer:
    """The buffer that ``buffer`` is a view of, through views of views; itself, if it is none of ``views``."""
    while shares_memory(buffer, views):
        buffer = views[buffer.data].source.buffer
    return buffer


def in_source(
    match: MatchBufferRegion, view: Buffer, indices: Sequence[Any] | None, known: Any = lambda e: e
) -> list[Any]:
    """The elements of the source that ``indices`` of the ``view`` refer to: the entire region if the view's axes are
    not the region's last ones. ``known`` gives the region's expressions in the effect's terms."""
    region = [(known(r.min), known(r.extent)) for r in match.source.region]
    lead = len(region) - view.ndim
    if indices is None or lead < 0 or len(indices) != view.ndim:
        return region
    if not all(_same_size(size, extent) for size, (_, extent) in zip(view.shape, region[lead:])):
        return region
    if not all(is_const(extent, 1) for _, extent in region[:lead]):
        return region
    moved = [_moved(index, low) for index, (low, _) in zip(indices, region[lead:])]
    return [*(low for low, _ in region[:lead]), *moved]


def _same_size(a: Expr, b: Expr) -> bool:
    return a is b or (isinstance(a, IntImm) and isinstance(b, IntImm) and a.value == b.value)


def _moved(index: Any, by: Expr) -> Any:
    if is_const(by, 0):
        return index
    if isinstance(index, tuple):
        low, extent = index
        return (by + low, extent)
    if isinstance(index, Ramp):
        return index.replace(base=by + index.base)
    return by + index


def with_views(pointers: frozenset[Var], views: Views) -> frozenset[Var]:
    """The memory of ``pointers`` by all the names that ``views`` give it."""
    behind = {p: source_of(view.source.buffer, views).data for p, view in views.items()}
    sources = {behind.get(p, p) for p in pointers}
    return pointers.union(sources, (p for p, source in behind.items() if source in sources))


def reads_memory(e: Expr) -> bool:
    """Whether a value depends on more than variables: on memory, or on what a call does."""
    return has_load(e) or any(effect_of(n) != "pure" for n in nodes_of(e) if type(n) is Call)


def may_change(e: Any, within: Any, aliased: Collection[Var] = ()) -> bool:
    """Whether ``e`` may get another value while the statement ``within`` runs: it reads memory that is written there.

    ``aliased`` has the pointers of memory that goes by several names around ``within``: a store to one of them may
    change what is read through another. A call with effects may change all memory.
    """
    if type(e) in LEAVES:
        return False
    nodes = nodes_of(e)
    if any(effect_of(n) != "pure" for n in nodes if type(n) is Call):
        return True
    read = memory_of(n for n in nodes if type(n) is BufferLoad)
    if not read:
        return False
    several = set(aliased)
    written: set[Var] = set()
    for n in walk(within):
        if isinstance(n, Call) and effect_of(n) not in ("pure", "read"):
            return True
        several.update(other_names(n))
        if isinstance(n, BufferStore):
            written.add(n.buffer.data)
    return not read.isdisjoint(with_names(written, several))


def with_names(pointers: Collection[Var], aliased: Collection[Var]) -> frozenset[Var]:
    """The memory of ``pointers`` by all its names: with ``aliased``, the pointers of memory that goes by several names, if
    one of them is among it."""
    found = frozenset(pointers)
    return found if found.isdisjoint(aliased) else found.union(aliased)


def other_names(node: Any) -> Iterator[Var]:
    """Pointers of memory that ``node`` gives another name: views of a block, and what a pointer variable is made from."""
    if isinstance(node, Block):
        for view in node.match_buffers:
            yield from (view.buffer.data, view.source.buffer.data)
    elif isinstance(node, LetStmt) and node.var.dtype.is_handle:
        yield node.var
        for n in walk(node.value):
            if isinstance(n, BufferLoad):
                yield n.buffer.data
            elif isinstance(n, Var) and n.dtype.is_handle:
                yield n


def parameter_pointers(func: PrimFunc) -> list[Var]:
    """The parameters of ``func``, in place of buffers their pointers."""
    return [func.buffer_map[p].data if p in func.buffer_map else p for p in func.params]


def overlapping(func: PrimFunc) -> frozenset[Var]:
    """The pointers of the parameters of ``func`` that may be of one memory: of all of them, if ``tir.noalias`` is false.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     B[0] = A[0]
    ... ''')
    >>> overlapping(f), sorted(v.name for v in overlapping(f.with_attr("tir.noalias", False)))
    (frozenset(), ['A', 'B'])
    """
    if func.attrs.get("tir.noalias", True):
        return frozenset()
    found = frozenset(p for p in parameter_pointers(func) if p.dtype.is_handle)
    return found if len(found) > 1 else frozenset()


def may_alias(func: PrimFunc) -> bool:
    """Whether two names may be of one memory: parameters may overlap, buffers share a pointer, or a let names one.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     B[0] = A[0]
    ... ''')
    >>> may_alias(f), may_alias(f.with_attr("tir.noalias", False))
    (False, True)
    """
    data = [b.data for b in func.buffers()]
    if len(set(data)) != len(data) or overlapping(func):
        return True
    return _names_a_pointer(func.body)


_names_a_pointer = Somewhere(lambda let: let.var.dtype.is_handle, LetStmt)


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


def in_own_memory(error: ScheduleError) -> ScheduleError:
    """``error`` about a function :func:`with_one_memory`, shown in the function :func:`with_own_memory`."""
    if error.func is not None:
        own = with_own_memory(error.func)
        error.func, error.nodes = own, same_nodes(error.func, own, error.nodes)
    return error


def with_plain_pointers(func: PrimFunc) -> PrimFunc:
    """``func`` without lets that only give a pointer another name: their buffers have the pointer itself, so that steps see
    one memory. Itself for a function without such lets.

    Raises ``ScheduleError`` for a buffer over another pointer into known memory, such as the address of an element.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32")):
    ...     p: T.handle("float32") = A.data
    ...     B = T.decl_buffer((8,), "float32", data=p)
    ...     B[0] = A[1]
    ... ''')
    >>> f.body.body.buffer.data, with_plain_pointers(f).body.buffer.data
    (p, A)
    """
    lets = [n for n in walk(func.body, lambda n: not isinstance(n, Expr)) if isinstance(n, LetStmt)]
    lets = [let for let in lets if let.var.dtype.is_handle]
    names: dict[Var, Var] = {}
    for let in lets:
        if isinstance(let.value, Var):
            names[let.var] = names.get(let.value, let.value)
    buffers = dict.fromkeys(n for n in walk(func.body) if isinstance(n, Buffer)) if lets else {}
    for let in lets:
        over = [b for b in buffers if names.get(b.data, b.data) is let.var]
        require(
            not over or len([*other_names(let)]) == 1,
            "{0} is declared over pointer `{1}` = `{2}`: steps do not know which elements of that memory it has",
            over[0].name if over else "",
            let.var.name,
            let.value,
            nodes=[let],
            legal="T.match_buffer, or the buffer itself with elem_offset",
        )
    if not names:
        return func
    changed = {b: b.replace(data=names[b.data]) for b in buffers if b.data in names}
    body = rewrite_statements(func.body, lambda n: n.body if isinstance(n, LetStmt) and n.var in names else None)
    return func.with_body(substitute(body, names, changed))
