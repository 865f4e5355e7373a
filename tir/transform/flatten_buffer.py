"""Flattens multi-dimensional buffers to one dimension (or to one for each group of axis separators)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..buffer import Buffer
from ..dtype import DType
from ..errors import BuildError
from ..expr import BufferLoad, Call, Expr, cast, const
from ..function import PrimFunc
from ..stmt import Allocate, AllocateConst, BufferStore, DeclBuffer, LetStmt, Stmt
from ..visit import rewrite, statements, walk
from .layout import as_size, dot, element_count, product, strides_of
from .passes import func_pass


def _groups(buffer: Buffer) -> list[range]:
    """The axes that share one physical axis, group by group."""
    cuts = [0, *buffer.axis_separators, len(buffer.shape)]
    return [range(a, b) for a, b in zip(cuts, cuts[1:])]


class _Flat:
    """A buffer, its flattened version, and the mapping of indices."""

    def __init__(self, old: Buffer):
        self.old = old
        self.strides = strides_of(old)
        self.groups = _groups(old)
        self.wide = old.is_wide
        if len(old.shape) == 1 and len(self.groups) == 1 and not old.strides:
            self.new = old
        else:
            self.new = old.replace(shape=tuple(self._sizes()), strides=(), axis_separators=self._separators())

    def _separators(self) -> tuple[int, ...]:
        return tuple(range(1, len(self.groups)))

    def _sizes(self) -> list[Expr]:
        sizes = []
        for group in self.groups:
            size: Expr | None = None
            for axis in group:
                extent = as_size(self.old.shape[axis])
                if self.wide and extent.dtype.bits < 64:
                    extent = cast("int64", extent)
                if self.old.strides and len(self.groups) == 1:  # padding is of rows in one physical axis
                    reach = (extent - 1) * self.strides[axis]
                    size = reach + 1 if size is None else size + reach
                else:
                    size = extent if size is None else size * extent
            sizes.append(const(1) if size is None else size)
        return sizes

    def indices(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        if self.new is self.old:
            return indices
        if len(self.groups) == 1:
            return (dot(indices, self.strides, self.wide),)
        flat = []
        for group in self.groups:
            inside = [indices[a] for a in group]
            sizes = self.old.replace(shape=tuple(self.old.shape[a] for a in group), strides=(), axis_separators=())
            flat.append(dot(inside, strides_of(sizes), self.wide))
        return tuple(flat)


@func_pass
def flatten_buffer(func: PrimFunc) -> PrimFunc:
    """``A[i, j]`` becomes ``A[i * stride + j]``: strides, offsets and axis separators are honoured.

    Parameter buffers keep their declared shape in the signature and get a flat view at the top of the body. Offsets
    (``elem_offset``) stay with the buffer. Raises ``BuildError`` for an argument with strides and axis separators, and for a
    buffer that is larger than its memory, where both are known.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((4, 8), "float32")):
    ...     for i, j in T.grid(4, 8):
    ...         A[i, j] = 1.0
    ... ''')
    >>> print(tir.transform.flatten_buffer(f))
    # from tir.script import tir as T
    <BLANKLINE>
    @T.prim_func
    def f(A: T.Buffer((4, 8), "float32")):
        A_1 = T.decl_buffer((32,), "float32", data=A.data)
        for i, j in T.grid(4, 8):
            A_1[i * 8 + j] = T.float32(1)
    """
    for buffer in func.buffer_map.values():
        if buffer.strides and len(_groups(buffer)) > 1:
            raise BuildError(
                f"{func.name}: argument `{buffer.name}` declares strides, which place all of its axes in one physical axis, and "
                "axis separators, which make it several; declare one of them"
            )
    flats: dict[Buffer, _Flat] = {}

    def flat(buffer: Buffer) -> _Flat:
        found = flats.get(buffer)
        if found is None:
            found = flats[buffer] = _Flat(buffer)
        return found

    declared: dict[Any, list[Buffer]] = {}
    for n in walk(func.body):
        if isinstance(n, DeclBuffer):
            declared.setdefault(n.buffer.data, []).append(n.buffer)

    def visit(item: Any) -> Any:
        if isinstance(item, (BufferLoad, BufferStore)):
            made = flat(item.buffer)
            if made.new is made.old:
                return None
            return item.replace(buffer=made.new, indices=made.indices(item.indices))
        if isinstance(item, DeclBuffer):
            made = flat(item.buffer)
            return None if made.new is made.old else item.replace(buffer=made.new)
        if isinstance(item, Allocate):
            return _allocate(item, declared.get(item.buffer_var, ()))
        return None

    body = rewrite(func.body, visit)
    _require_memory(func, body, flats.values())
    for buffer in reversed(func.buffers()):
        made = flats.get(buffer)
        if made is not None and made.new is not buffer:
            body = DeclBuffer(made.new, body)
    return func.with_body(body)


def _require_memory(func: PrimFunc, body: Stmt, flats: Iterable[_Flat]) -> None:
    """Refuse a buffer that goes on beyond its memory: a parameter's, what a statement allocates, what is left from an element on;
    where both sizes are known."""
    held = {b.data: _bytes(_Flat(b).new.shape, b.dtype) for b in func.buffers()}
    for n in statements(body):
        if isinstance(n, LetStmt) and isinstance(n.value, Call) and n.value.op == "address_of":
            place = n.value.args[0]
            if isinstance(place, BufferLoad) and (has := held.get(place.buffer.data)) is not None:
                before = _bytes(place.indices, place.buffer.dtype)
                held[n.var] = None if before is None or len(place.indices) > 1 else has - before
        elif isinstance(n, (Allocate, AllocateConst)):
            held[n.buffer_var] = _bytes(n.extents if isinstance(n, Allocate) else (const(n.data.size),), n.dtype)
    for flat in (f for f in flats if f.old not in func.buffers()):  # an argument begins at its first element
        buffer, offset = flat.old, const(0) if flat.old.elem_offset is None else flat.old.elem_offset
        needs, before, has = (
            _bytes(flat.new.shape, buffer.dtype),
            _bytes((offset,), buffer.dtype),
            held.get(buffer.data),
        )
        if needs is not None and before is not None and has is not None and before + needs > has:
            raise BuildError(
                f"{func.name}: buffer `{buffer.name}` of shape {buffer.shape} and {buffer.dtype} at offset {offset} does not fit: its "
                f"memory has {has} bytes"
            )


def _bytes(extents: Sequence[Expr], dtype: DType) -> int | None:
    count = element_count(extents)
    return None if count is None else count * dtype.bytes


def _allocate(item: Allocate, views: Any) -> Allocate | None:
    """One extent for each physical axis of the buffer allocated."""
    groups = [g for v in views[:1] for g in _groups(v)] if len(views) else [range(len(item.extents))]
    if len(item.extents) == len(groups):
        return None
    if len(groups) == 1 or groups[-1].stop != len(item.extents):
        groups = [range(len(item.extents))]
    return item.replace(extents=tuple(product(item.extents[axis] for axis in group) for group in groups))
