"""What rules share: operands staged in other memory, in whole tiles; for GPUs, loops distributed over threads, and pipelines
of copies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from ..buffer import Buffer
from ..expr import BufferLoad, IntImm, Var
from ..schedule import BlockRV, LoopRV, Schedule
from ..target import Target
from ..visit import walk
from .contracted import Contraction
from .nest import Access, Axis, Nest, extent_of
from .product import as_product
from .space import Env, accepted, block_names
from .turning import copied, written

WARP = 32  # threads
VECTOR = 16  # bytes of the widest access of a thread
ASYNC = 80  # the first architecture that copies to shared memory asynchronously
MULTIPROCESSORS = 100  # of a chip, about


@dataclass(frozen=True)
class Copy:
    """A block that copies tiles of an operand: of ``width`` neighbours in global memory at a time; ``has_terms_last`` if
    they are terms, not rows or columns."""

    block: BlockRV
    width: int
    has_terms_last: bool

    def is_plain(self, sch: Schedule) -> bool:
        """Whether the copy is the operand as it is, neither padded nor gathered, and of its last axis."""
        value = getattr(sch.get(self.block).body, "value", None)
        plain = isinstance(value, BufferLoad) and all(isinstance(i, (Var, IntImm)) for i in value.indices)
        return plain and isinstance(value.indices[-1], Var)

    def turn(self, sch: Schedule) -> None:
        """Exchange the last two axes of the copy."""
        axes = len(sch.get(self.block).writes[0].buffer.shape)
        order = [*range(axes - 2), axes - 1, axes - 2]
        sch.transform_layout(self.block, ("write", 0), lambda *at: tuple(at[n] for n in order))


@dataclass(frozen=True)
class Staged:
    """A contraction made a matrix product of whole tiles: its ``axes`` (batches if any, rows, columns, terms), the ``copies``
    of operands, the columns' first, and the block that stores the result, with what follows it."""

    axes: tuple[Axis, ...]
    copies: tuple[Copy, ...]
    store: BlockRV

    @staticmethod
    def of(sch: Schedule, contraction: Contraction, tile: Sequence[int], scope: str, sums: str) -> Staged:
        """Stage the operands in ``scope``, the result in ``sums``; ``tile``: rows, columns and terms of a tile."""
        name = contraction.nest.name
        before = block_names(sch)
        found = as_product(sch, contraction)
        factors = {found.rows[0].var: tile[0], found.lane.var: tile[1], found.terms[0].var: tile[2]}
        widths = [_width(contraction, o) for o in (contraction.panel, contraction.other)]
        terms_last = [o.places[found.terms[0].var] == len(o.indices) - 1 for o in (found.panel, found.other)]
        operands = [o.buffer for o in (found.panel, found.other)]
        if any(a.size % factors.get(a.var, 1) for a in found.nest.axes):
            sch.pad_einsum(name, [factors.get(i.var, 1) for i in found.nest.block.iter_vars])
            operands = _padded(sch, name, operands, before)
        numbers = [[r.buffer for r in sch.get(name).reads].index(buffer) for buffer in operands]
        blocks = [copied(sch, name, number, scope, before) for number in numbers]
        copies = tuple(Copy(*parts) for parts in zip(blocks, widths, terms_last))
        store = written(sch, name, sums, before)
        nest = Nest.of(sch, name)
        assert nest is not None
        by_name = {a.var.name: a for a in nest.axes}
        wanted = [*found.batch, found.rows[0], found.lane, found.terms[0]]
        return Staged(tuple(by_name[a.var.name] for a in wanted), copies, store)


def _padded(sch: Schedule, name: str, operands: Sequence[Buffer], before: Sequence[str]) -> list[Buffer]:
    """What the block sums in place of ``operands`` since it is padded; what else it reads, as what sums begin with, is padded there."""
    block = sch.get(name)
    read = [r.buffer for r in block.reads]
    made = [
        b for n in block_names(sch) if n not in before for b in [sch.get(n)] if b.reads and b.writes[0].buffer in read
    ]
    summed = {e.buffer for e in walk(block.body) if isinstance(e, BufferLoad)}
    copies = {b.reads[0].buffer: b.writes[0].buffer for b in made if b.writes[0].buffer in summed}
    for copy in made:
        if copy.writes[0].buffer not in (*summed, *operands):
            sch.compute_inline(copy.name)
    return [copies.get(o, o) for o in operands]


def _width(contraction: Contraction, operand: Access) -> int:
    """How many elements of an operand that are neighbours in the product are so in memory, wherever they begin: 16 bytes of
    them, or less."""
    own = _innermost(contraction, operand)[-1]
    length = getattr(operand.buffer.shape[-1], "value", 1)
    most = VECTOR // operand.buffer.dtype.bytes
    if operand.stride(own.var) != 1:
        return 1
    return next(w for w in (most, most // 2, most // 4, 1) if w >= 1 and length % w == 0 and own.size % w == 0)


def _innermost(contraction: Contraction, operand: Access) -> list[Axis]:
    """The axes of the group in which an operand's neighbours are."""
    is_panel = operand is contraction.panel
    groups = [contraction.terms, [*contraction.columns, contraction.lane] if is_panel else contraction.rows]
    return next((g for g in groups if operand.stride(g[-1].var) == 1), groups[0])


def share(sch: Schedule, loops: Sequence[LoopRV], threads: Mapping[str, int], width: int) -> None:
    """Distribute the iterations of ``loops`` over threads (their number by axis), ``width`` neighbours each at a time."""
    size = prod(extent_of(sch, loop) for loop in loops)
    fused = sch.fuse(*loops) if len(loops) > 1 else loops[0]
    more, *own, lanes = sch.split(fused, [None, *threads.values(), width], preserve_unit_iters=False)
    for loop, axis in zip(own, threads):
        sch.bind(loop, axis)
    if width > 1:
        sch.vectorize(lanes)
    if size <= 64 * width * prod(threads.values()):
        sch.unroll(more)


def vector_width(nest: Nest, column: Axis) -> int:
    """How many neighbours along ``column`` a thread accesses at once: 16 bytes, where that axis is whole vectors of them and
    all operands are read along it."""
    width = max(1, VECTOR * 8 // nest.width)
    whole = column.extent is not None and column.extent % width == 0
    return width if whole and all(a.stride(column.var) in (0, 1) for a in nest.accesses) else 1


def in_vectors(sch: Schedule, block: BlockRV) -> None:
    """Make the innermost loop of a block vectors that a thread accesses at once, the others straight code."""
    loop = sch.get_loops(block)[-1]
    bytes_each = sch.get(block).writes[0].buffer.dtype.bytes
    width = next(w for w in (VECTOR // bytes_each, 2, 1) if extent_of(sch, loop) % w == 0)
    if width > 1:
        more, lanes = sch.split(loop, [None, width])
        accepted(sch.vectorize, lanes)
        sch.unroll(more)


def pipeline(sch: Schedule, loop: LoopRV, copies: int, env: Env, stages: int = 2) -> None:
    """Let the first ``copies`` statements of a loop run ``stages`` - 1 iterations ahead, as asynchronous copies."""
    if architecture(env.target) < ASYNC or extent_of(sch, loop) < stages:
        return
    sch.annotate(loop, "software_pipeline_stage", [0] * copies + [stages - 1])
    sch.annotate(loop, "software_pipeline_order", list(range(copies + 1)))
    sch.annotate(loop, "software_pipeline_async_stages", [0])


def architecture(target: Target) -> int:
    """The number of the architecture that a target is compiled for: 80 for ``sm_80``.

    >>> architecture(Target("cuda", arch="sm_90a"))
    90
    """
    from codegen.cuda.driver import arch_of

    found = re.search(r"_(\d+)", arch_of(target))
    return int(found.group(1)) if found else 80
