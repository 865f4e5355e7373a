"""The storage of buffers: set_scope, storage_align, storage_swizzle, set_axis_separator, unsafe_set_dtype."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import Any

from ...aliases import is_same_parameter, memory_of, sharing
from ...analysis.contents import NAMING, named, shape, with_memory
from ...analysis.index import BlockRef
from ...analysis.users import by_address
from ...annotations import DIM_ALIGN, SWIZZLE
from ...buffer import Buffer, BufferRegion, MatchBufferRegion
from ...dtype import DType
from ...errors import ScheduleError, require, require_none
from ...expr import BufferLoad, Call, Cast, Expr, Var, cast, is_const
from ...function import PrimFunc
from ...levels import is_shared
from ...node import Node, frozendict
from ...stmt import BlockRealize, BufferStore, DeclBuffer, For, SeqStmt, defined_by, first_line, is_long
from ...visit import LEAVES, free_vars, rewrite, statements
from ..invariants import Keeps
from ..primitive import primitive
from ..primitive_arguments import BadArgument, shown
from ..staged_copies import require_scope
from ..state import State, pick_buffer


def _allocated(state: State, block: BlockRef, which: Any, side: str) -> Buffer:
    buffer = pick_buffer(block, side, which)
    params = set(state.func.buffer_map.values())
    require(buffer not in params,
            "buffer {0} is a parameter of the function: its memory is the caller's",
            buffer.name, legal="the copy that cache_read or cache_write makes")  # fmt: skip
    require_no_view(state, buffer)
    return buffer


def require_no_view(state: State, buffer: Buffer) -> None:
    """Refuse a view, by ``match_buffer`` or declared over a pointer: its memory is that of another buffer."""
    for rule, source in (
        ("is a view of a region of", next((m.source.buffer for m in _matches(state) if m.buffer is buffer), None)),
        ("is declared over the pointer of", _owner(state, buffer)),
    ):
        require(source is None or source is buffer,
                "buffer {0} {1} {2}, whose memory it uses",
                buffer.name, rule, source.name if source else "", legal=source.name if source else "")  # fmt: skip


def _owner(state: State, buffer: Buffer) -> Buffer | None:
    """The parameter or allocation whose pointer ``buffer`` has; None for a view of a region."""
    owned = (state.func.buffer_map.values(), *(n.block.alloc_buffers for n in with_memory(state.func.body)))
    return next(iter(sharing(chain.from_iterable(owned), buffer)), None)


def require_follows(state: State, buffer: Buffer) -> None:
    """Refuse a buffer over memory that a statement allocates, of so many elements of a type, whatever is declared there."""
    made = next((s for s in statements(state.func.body) if defined_by(s) is buffer.data), None)
    require(made is None,
            "buffer {0} is declared over the memory of `{1}`, which would not follow",
            buffer.name, lambda: first_line(made), legal="a buffer of T.alloc_buffer", nodes=[made] if made else [])  # fmt: skip


def _require_one_name(state: State, buffer: Buffer) -> None:
    """Refuse a buffer of whose memory another is declared, which another layout of rows would leave behind."""
    require_follows(state, buffer)
    owner = _owner(state, buffer)
    names = sharing([*([owner] if owner else []), *_with_views(state, buffer)], buffer)
    other = next((b for b in names if b is not buffer), None)
    require(other is None,
            "{0} names the memory of {1} too, and would not follow another layout",
            other.name if other else "", buffer.name)  # fmt: skip


_NAMING = (BufferLoad, BufferStore, BufferRegion, DeclBuffer)


def _matches(state: State) -> list[MatchBufferRegion]:
    """Every view of the function, outer ones first."""
    return state.index.views


def _with_views(state: State, buffer: Buffer) -> list[Buffer]:
    """``buffer`` and what else names its memory: views of its regions, views of those, other buffers with its pointer."""
    found = [buffer]
    for match in _matches(state):
        if match.source.buffer in found:
            found.append(match.buffer)
    pointers = memory_of(found)
    nodes: list[Any] = [state.func.body]
    for node in nodes:  # which grows
        kind = type(node)
        if kind is SeqStmt:
            nodes += NAMING.of_any(node, pointers)
        elif kind not in LEAVES and (kind is not For or not pointers.isdisjoint(named(node))):
            nodes += node.children()
    others = sharing((n.buffer for n in nodes if isinstance(n, _NAMING)), pointers)
    return list(dict.fromkeys([*found, *others]))


def _sharing(made: Mapping[Buffer, Buffer]) -> dict[Buffer, Buffer]:
    """``made``, where what is made of buffers of one pointer has one pointer again."""
    pointers = {old.data: new.data for old, new in made.items()}
    return {old: new.replace(data=pointers[old.data]) for old, new in made.items()}


@primitive(group="memory")
def set_scope(state: State, block: BlockRef, buffer_index: int | str | Buffer, storage_scope: str) -> State:
    """Put a buffer that ``block`` writes (number or name) into ``storage_scope``.

    Before, and after ``sch.set_scope("H", 0, "shared")``::

        H = T.alloc_buffer((8,), "float32")
        for i in range(8):
            with T.block("H"):
                vi = T.axis.spatial(8, i)
                H[vi] = A[vi] * 2.0
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = H[vi] + 1.0

        H = T.alloc_buffer((8,), "float32", scope="shared")
        for i in range(8):
            with T.block("H"):
                vi = T.axis.spatial(8, i)
                H[vi] = A[vi] * 2.0
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = H[vi] + 1.0

    Raises ``ScheduleError`` for a parameter buffer, or a scope that does not exist.
    """
    require_scope(storage_scope)
    views = _with_views(state, _allocated(state, block, buffer_index, "writes"))
    moved = {b: b.replace(scope=storage_scope, data=b.data.replace(scope=storage_scope)) for b in views}
    return state.with_func(swap_buffers(state.func, _sharing(moved)))


@primitive(group="memory")
def unsafe_set_dtype(state: State, block: BlockRef, buffer_index: int | str | Buffer, dtype: str) -> State:
    """Store a buffer that ``block`` writes in another type; values are cast when stored and back when loaded.

    Unsafe, as the name says: precision and range change. Raises ``ScheduleError`` for a parameter buffer, and for one whose
    address a call has, which expects elements of the old type.

    Before, and after ``sch.unsafe_set_dtype("H", 0, "float16")``::

        H = T.alloc_buffer((4, 8), "float32")
        for i, j in T.grid(4, 8):
            with T.block("H"):
                vi, vj = T.axis.remap("SS", [i, j])
                H[vi, vj] = A[vi, vj] * 2.0
        for i, j in T.grid(4, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = H[vi, vj] + 1.0

        H = T.alloc_buffer((4, 8), "float16")
        for i, j in T.grid(4, 8):
            with T.block("H"):
                vi, vj = T.axis.remap("SS", [i, j])
                H[vi, vj] = T.Cast("float16", A[vi, vj] * 2.0)
        for i, j in T.grid(4, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.Cast("float32", H[vi, vj]) + 1.0
    """
    buffer = _allocated(state, block, buffer_index, "writes")
    require_follows(state, buffer)
    try:
        wanted = DType(dtype)
    except ValueError as error:
        raise ScheduleError("{0}", error) from None
    numbers = wanted.is_float or wanted.is_int or wanted.is_bool
    require(wanted.lanes == 1 and numbers, "a buffer holds numbers, one an element, not {0}", wanted)
    views = _with_views(state, buffer)
    other = [v for v in views if v.dtype is not buffer.dtype]
    rule = "{1} holds {2} in the memory of {3}, which would hold {4}"
    require_none(other, rule, lambda v: v.name, lambda v: v.dtype, buffer.name, wanted)
    user = next((e for v in views for e in by_address(state.func.body, v)), None)
    require(user is None,
            "`{0}` has the address of memory of {1}, and expects {2} there",
            user.caller if user else "", buffer.name, buffer.dtype, nodes=[user.node] if user else [])  # fmt: skip

    def loaded(load: BufferLoad) -> Expr:
        return cast(buffer.dtype.with_lanes(load.dtype.lanes), load)

    def stored(value: Expr) -> Expr:
        return cast(wanted.with_lanes(value.dtype.lanes), value)

    held = _sharing({b: b.with_dtype(wanted) for b in views})
    return state.with_func(swap_buffers(state.func, held, loaded, stored))


@primitive(group="memory")
def set_axis_separator(state: State, block: BlockRef, buffer: Any, axis_separators: Sequence[int]) -> State:
    """Split the axes of a buffer into groups, each of which flattening turns into one physical axis.

    ``buffer`` is a name, or ``("read" | "write", number)``. Raises ``ScheduleError`` for separators that do not
    increase within the rank, and for a buffer that declares its strides.

    Before, and after ``sch.set_axis_separator("H", "H", [1])``::

        H = T.alloc_buffer((4, 8), "float32")
        for i, j in T.grid(4, 8):
            with T.block("H"):
                vi, vj = T.axis.remap("SS", [i, j])
                H[vi, vj] = A[vi, vj] * 2.0
        for i, j in T.grid(4, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = H[vi, vj] + 1.0

        H = T.alloc_buffer((4, 8), "float32", axis_separators=[1])
        for i, j in T.grid(4, 8):
            with T.block("H"):
                vi, vj = T.axis.remap("SS", [i, j])
                H[vi, vj] = A[vi, vj] * 2.0
        for i, j in T.grid(4, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = H[vi, vj] + 1.0
    """
    found = pick_any(block, buffer)
    ends = [0, *axis_separators, found.ndim]
    require(all(a <= b for a, b in zip(ends, ends[1:])),
            "axis separators {0} do not increase within the {1} axes of {2}",
            list(axis_separators), found.ndim, found.name, legal=f"ascending numbers from 0 to {found.ndim}")  # fmt: skip
    require(not found.strides or not axis_separators,
            "buffer {0} declares its strides, which place all of its axes in one physical axis",
            found.name, legal="a buffer without strides")  # fmt: skip
    separated = found.replace(axis_separators=tuple(int(a) for a in axis_separators))
    return state.with_func(swap_buffers(state.func, {found: separated}))


@primitive(keeps=Keeps.ACCESSES | Keeps.KERNELS | Keeps.LOOPS, group="memory")
def storage_align(state: State, block: BlockRef, buffer_index: int, axis: int, factor: int, offset: int) -> State:
    """Make the stride of ``axis`` of a written buffer ≡ ``offset`` modulo ``factor`` (elements), by padding.

    With factor 32 and offset 1 the rows of a 32-wide shared tile start in different banks. Raises ``ScheduleError``
    for an axis the buffer does not have, or a factor that is not positive. The annotation takes effect when the buffer
    gets its final shape: rows of 8 elements, as here, then begin 9 elements apart.

    Before, and after ``sch.storage_align("H", 0, 0, 8, 1)``::

        H = T.alloc_buffer((4, 8), "float32")
        for i, j in T.grid(4, 8):
            with T.block("H"):
                vi, vj = T.axis.remap("SS", [i, j])
                H[vi, vj] = A[vi, vj] * 2.0
        for i, j in T.grid(4, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = H[vi, vj] + 1.0

        H = T.alloc_buffer((4, 8), "float32")
        for i, j in T.grid(4, 8):
            with T.block("H"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"buffer_dim_align": [[0, 0, 8, 1]]})
                H[vi, vj] = A[vi, vj] * 2.0
        for i, j in T.grid(4, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = H[vi, vj] + 1.0
    """
    buffer = pick_buffer(block, "writes", buffer_index)
    number = buffer.ndim + axis if axis < 0 else axis
    require(0 <= number < buffer.ndim,
            "buffer {0} has {1} axes, so there is no axis {2}",
            buffer.name, buffer.ndim, axis, legal=f"{-buffer.ndim} to {buffer.ndim - 1}")  # fmt: skip
    require(factor > 0, "the alignment factor must be positive, not {0}", factor, legal="1 or more")
    require(offset >= 0, "the alignment offset must be at least 0, not {0}", offset, legal="0 or more")
    _require_layout_is_free(state, buffer, number)
    _require_one_name(state, buffer)
    entry = (int(buffer_index), number, int(factor), int(offset))
    old = block.block.annotations.get(DIM_ALIGN, ())
    kept = tuple(e for e in old if tuple(e[:2]) != entry[:2])
    notes = frozendict({**block.block.annotations, DIM_ALIGN: (*kept, entry)})
    return state.replace(block.block, block.block.replace(annotations=notes))


def _require_layout_is_free(state: State, buffer: Buffer, axis: int) -> None:
    """Raise ``ScheduleError`` if a view declares a stride or an offset that other strides of ``axis`` and outside contradict."""
    moved = {buffer: axis}
    given = {*state.func.params}.union(
        *(free_vars(e) for b in state.func.buffer_map.values() for e in (*b.shape, *b.strides))
    )
    for match in _matches(state):
        source, view = match.source.buffer, match.buffer
        if source not in moved:
            continue
        moved[view] = number = moved[source] - (source.ndim - view.ndim)
        offset = () if view.elem_offset is None or is_const(view.elem_offset, 0) else (view.elem_offset,)
        fixed = (e for e in (*view.strides[: max(number + 1, 0)], *offset) if not isinstance(e, Var) or e in given)
        require(next(fixed, None) is None and view.offset_factor <= 1,
                "view {0} of buffer {1} declares its layout, which other strides of {1} would contradict",
                view.name, source.name, legal="strides and an offset of the view that are variables of its own")  # fmt: skip
        own = {e for e in (*view.strides[: max(number + 1, 0)], view.elem_offset) if isinstance(e, Var)}
        require(not _is_computed_with(state.func.body, own),
                "the program computes with strides or the offset of view {0} of buffer {1}, which would change",
                view.name, source.name)  # fmt: skip


def _is_computed_with(root: Any, variables: Collection[Var]) -> bool:
    """Whether one of ``variables`` occurs under ``root`` outside of the buffers that declare it."""
    found: list[Any] = [root]
    for item in found:
        if item in variables:
            return True
        if isinstance(item, Node) and not isinstance(item, Buffer):
            found.extend(item.children())
    return False


@primitive(keeps=Keeps.ACCESSES | Keeps.KERNELS | Keeps.LOOPS, group="memory")
def storage_swizzle(state: State, block: BlockRef, buffer_index: int) -> State:
    """Permute the 16-byte pieces of each row of a written buffer in shared memory: XOR of column and row number.

    The pieces of a column then lie in different banks, without padding: copies of 16 bytes and ``ldmatrix`` have no
    bank conflicts. The annotation takes effect when lowering for a GPU: the program's indices stay as they are, the
    kernel's become ``j ^ i % 8 * p`` with pieces of p elements. The rows of the allocated buffer must have 2, 4 or a
    multiple of 8 pieces, and their number must be a multiple of 8.

    Before, and after ``sch.storage_swizzle("H", 0)``::

        H = T.alloc_buffer((8, 32), "float32", scope="shared")
        for i, j in T.grid(8, 32):
            with T.block("H"):
                vi, vj = T.axis.remap("SS", [i, j])
                H[vi, vj] = A[vi, vj] * 2.0

        H = T.alloc_buffer((8, 32), "float32", scope="shared")
        for i, j in T.grid(8, 32):
            with T.block("H"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"buffer_swizzle": [0]})
                H[vi, vj] = A[vi, vj] * 2.0

    Raises ``ScheduleError`` for a buffer that is not in shared memory, has one axis, or has ``storage_align``.
    """
    buffer = pick_buffer(block, "writes", buffer_index)
    require(is_shared(buffer.scope),
            "buffer {0} is in `{1}` memory; banks are a matter of shared memory",
            buffer.name, buffer.scope, legal="set_scope to shared or shared.dyn first")  # fmt: skip
    _require_one_name(state, buffer)
    require(buffer.ndim >= 2, "buffer {0} has {1} axes; a swizzle exchanges pieces of rows", buffer.name, buffer.ndim)
    notes = block.block.annotations
    aligned = any(int(entry[0]) == buffer_index for entry in notes.get(DIM_ALIGN, ()))
    require(not aligned,
            "the rows of {0} are padded by storage_align already",
            buffer.name, legal="storage_swizzle without storage_align")  # fmt: skip
    swizzled = (*(n for n in notes.get(SWIZZLE, ()) if n != buffer_index), int(buffer_index))
    return state.replace(block.block, block.block.replace(annotations=frozendict({**notes, SWIZZLE: swizzled})))


def _names_buffer(which: Any) -> bool:
    is_number = isinstance(which, int) and not isinstance(which, bool) and abs(which) < 2**31
    return is_number or isinstance(which, (str, Buffer))


def pick_any(block: BlockRef, buffer: Any) -> Buffer:
    """A buffer of ``block`` by name, object, number, or (side, number or name)."""
    side: Any
    which: Any
    pair = isinstance(buffer, (tuple, list)) and len(buffer) == 2
    side, which = buffer if pair else ("write", buffer)
    if not _names_buffer(which) or not isinstance(side, str):
        raise BadArgument(f'`buffer` is a buffer, its name or number, or a pair as ("read", 0), not {shown(buffer)}')
    if pair:
        require(side in ("read", "write"), "a block has no buffers `{0}`", side, legal='"read" or "write"')
        return pick_buffer(block, side + "s", which)
    for kind in ("writes", "reads"):
        buffers = [r.buffer for r in getattr(block.block, kind)]
        if any(is_same_parameter(b, which) if isinstance(which, Buffer) else b.name == which for b in buffers):
            return pick_buffer(block, kind, which)
    names = [r.buffer.name for r in (*block.block.writes, *block.block.reads)]
    require(
        not isinstance(which, (str, Buffer)),
        "block {0} neither writes nor reads a buffer `{1}`",
        block,
        which if isinstance(which, str) else getattr(which, "name", ""),
        legal=list(dict.fromkeys(names)),
        nodes=(),
    )
    return pick_buffer(block, "writes", which)


def swap_buffers(
    func: PrimFunc,
    swapped: Mapping[Buffer, Buffer],
    load: Callable[[BufferLoad], Expr] = lambda load: load,
    stored: Callable[[Expr], Expr] = lambda value: value,
) -> PrimFunc:
    """``func`` with buffers declared and used as others; ``load`` and ``stored`` wrap what is loaded and stored."""
    pointers = {old.data: new.data for old, new in swapped.items()}
    made = set(swapped.values())

    def visit(node: Any) -> Any:
        kind = type(node)
        if kind is BufferLoad:
            return load(node) if node.buffer in made else None
        if kind is BufferStore:
            return node.replace(value=stored(node.value)) if node.buffer in made else None
        if kind is Buffer:
            return swapped.get(node)
        if kind is Call and node.op == "address_of" and isinstance(node.args[0], Cast):
            return node.replace(args=(node.args[0].value,))  # an address is of the element, not of its value
        return pointers.get(node) if kind is Var else None

    def names_one(node: Any) -> bool:
        return type(node) is not For or not pointers.keys().isdisjoint(named(node))

    buffer_map = frozendict({p: swapped.get(b, b) for p, b in func.buffer_map.items()})
    others = _parts_without(func.body, [*swapped, *pointers])
    return func.replace(body=rewrite(func.body, visit, enter=names_one, kept=others), buffer_map=buffer_map)


def _parts_without(stmt: Any, names: Collection[Any]) -> set[Any]:
    """The members of the outermost long sequences in a statement, and the buffers allocated by the blocks around them, that
    are not among ``names``, and in which none of these occurs."""
    found: set[Any] = set()
    for s in shape(stmt):
        if type(s) is SeqStmt:
            found.update(s.stmts)
            found.difference_update(NAMING.of_any(s, names))
        elif type(s) is BlockRealize and is_long(s.block.alloc_buffers):
            found.update(s.block.alloc_buffers)
    found.difference_update(names)
    return found
