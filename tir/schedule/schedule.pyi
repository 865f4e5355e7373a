"""Made by ``python -m tests.tools.generated``; do not edit."""

# ruff: noqa
# fmt: off
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

from ..buffer import Buffer
from ..expr import Expr
from ..function import IRModule, PrimFunc
from ..stmt import Block, For
from .ask import Answer
from .handles import BlockRV, ExprRV, LoopRV, StmtSRef
from .offers import Offers
from .state import State
from .views import Views


class Asker:
    def __init__(self, sch: Schedule): ...
    def __call__(self, place: LoopRV | BlockRV | str) -> Offers: ...
    def add_unit_loop(self, block_or_loop: BlockRV | str | LoopRV = ...) -> Answer: ...
    @overload
    def annotate(self, block_or_loop: BlockRV | str | LoopRV, ann_key: str, ann_val: Any) -> Answer: ...
    @overload
    def annotate(self, *, ann_key: str, ann_val: Any) -> Answer: ...
    def annotate_buffer_access(self, block: BlockRV | str, buffer_index: int | str | Buffer, buf_type: str, gen_new_ranges: Any) -> Answer: ...
    def auto_inline(self, *blocks: BlockRV | str) -> Answer: ...
    @overload
    def bind(self, loop: LoopRV | str, thread_axis: str, *, unsafe: bool = False) -> Answer: ...
    @overload
    def bind(self, *, thread_axis: str, unsafe: bool = False) -> Answer: ...
    def blockize(self, target: LoopRV | str | BlockRV | str | Sequence[BlockRV | str] = ..., preserve_unit_iters: bool = True, *, unsafe: bool = False) -> Answer: ...
    def cache_index(self, block: BlockRV | str, storage_scope: str, cse_thresh: int = 0) -> Answer: ...
    def cache_inplace(self, block: BlockRV | str, read_buffer_index: int | str | Buffer, storage_scope: str, *, unsafe: bool = False) -> Answer: ...
    def cache_read(self, block: BlockRV | str, read_buffer_index: int | str | Buffer, storage_scope: str, consumer_blocks: list[BlockRV | str] | None = None, *, unsafe: bool = False) -> Answer: ...
    def cache_write(self, block: BlockRV | str, write_buffer_index: int | str | Buffer, storage_scope: str, consumer_blocks: list[BlockRV | str] | None = None, *, unsafe: bool = False) -> Answer: ...
    def compute_at(self, block: BlockRV | str, loop: LoopRV | str = ..., preserve_unit_loops: bool = False, index: int = -1, *, unsafe: bool = False) -> Answer: ...
    def compute_inline(self, block: BlockRV | str, *, unsafe: bool = False) -> Answer: ...
    def compute_root(self, block: BlockRV | str, *, unsafe: bool = False) -> Answer: ...
    def decompose_padding(self, block: BlockRV | str, loop: LoopRV | str = ..., *, unsafe: bool = False) -> Answer: ...
    def decompose_reduction(self, block: BlockRV | str, loop: LoopRV | str = ..., *, unsafe: bool = False) -> Answer: ...
    def double_scan(self, loop: LoopRV | str = ...) -> Answer: ...
    def enter_postproc(self) -> Answer: ...
    def factor_scan(self, loop: LoopRV | str = ...) -> Answer: ...
    def fission(self, loop: LoopRV | str = ..., at: int | Sequence[int] | None = None, *, unsafe: bool = False) -> Answer: ...
    def fuse(self, *loops: LoopRV | str, preserve_unit_iters: bool = True, name: str | None = None) -> Answer: ...
    def fuse_reduction_epilogue(self, reduction_block: BlockRV | str, epilogue_block: BlockRV | str, *, unsafe: bool = False) -> Answer: ...
    def hoist(self, block: BlockRV | str, loop: LoopRV | str | None = None) -> Answer: ...
    @overload
    def loop_partition(self, loop: LoopRV | str, factors: Sequence[int | Expr | None], preserve_unit_iters: bool = True) -> Answer: ...
    @overload
    def loop_partition(self, *, factors: Sequence[int | Expr | None], preserve_unit_iters: bool = True) -> Answer: ...
    def merge(self, *loops: LoopRV | str, unsafe: bool = False) -> Answer: ...
    def pad_einsum(self, block: BlockRV | str, padding: Sequence[int]) -> Answer: ...
    def parallel(self, loop: LoopRV | str = ..., *, unsafe: bool = False) -> Answer: ...
    @overload
    def prefetch(self, loop: LoopRV | str, block: BlockRV | str, read_buffer_index: int | str | Buffer, offset: int = 1, locality: int = 3) -> Answer: ...
    @overload
    def prefetch(self, *, block: BlockRV | str, read_buffer_index: int | str | Buffer, offset: int = 1, locality: int = 3) -> Answer: ...
    @overload
    def privatize(self, loop: LoopRV | str, buffer: str | Buffer, *, unsafe: bool = False) -> Answer: ...
    @overload
    def privatize(self, *, buffer: str | Buffer, unsafe: bool = False) -> Answer: ...
    @overload
    def read_at(self, loop: LoopRV | str, block: BlockRV | str, read_buffer_index: int | str | Buffer, storage_scope: str, *, unsafe: bool = False) -> Answer: ...
    @overload
    def read_at(self, *, block: BlockRV | str, read_buffer_index: int | str | Buffer, storage_scope: str, unsafe: bool = False) -> Answer: ...
    def reindex(self, block: BlockRV | str, buffer: Any, *, unsafe: bool = False) -> Answer: ...
    def reindex_cache_read(self, block: BlockRV | str, read_buffer_index: int | str | Buffer, storage_scope: str, index_map: Any, *, unsafe: bool = False) -> Answer: ...
    def reindex_cache_write(self, block: BlockRV | str, write_buffer_index: int | str | Buffer, storage_scope: str, index_map: Any, *, unsafe: bool = False) -> Answer: ...
    def reorder(self, *loops: LoopRV | str, unsafe: bool = False) -> Answer: ...
    def reorder_block_iter_var(self, block: BlockRV | str, new_order: Sequence[int]) -> Answer: ...
    def reverse_compute_at(self, block: BlockRV | str, loop: LoopRV | str = ..., preserve_unit_loops: bool = False, index: int = -1, *, unsafe: bool = False) -> Answer: ...
    def reverse_compute_inline(self, block: BlockRV | str, *, unsafe: bool = False) -> Answer: ...
    @overload
    def rfactor(self, loop: LoopRV | str, factor_axis: int) -> Answer: ...
    @overload
    def rfactor(self, *, factor_axis: int) -> Answer: ...
    def rolling_buffer(self, block: BlockRV | str, write_buffer_index: int | str | Buffer, *, unsafe: bool = False) -> Answer: ...
    def sample_categorical(self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None) -> Answer: ...
    def sample_compute_location(self, block: BlockRV | str, decision: int | None = None) -> Answer: ...
    @overload
    def sample_partitioned_tile(self, loop: LoopRV | str, n: int, partition_pos: int = 0, innerpart_factor: int = 1, decision: Sequence[int] | None = None) -> Answer: ...
    @overload
    def sample_partitioned_tile(self, *, n: int, partition_pos: int = 0, innerpart_factor: int = 1, decision: Sequence[int] | None = None) -> Answer: ...
    @overload
    def sample_perfect_tile(self, loop: LoopRV | str, n: int, max_innermost_factor: int = 16, decision: Sequence[int | None] | None = None) -> Answer: ...
    @overload
    def sample_perfect_tile(self, *, n: int, max_innermost_factor: int = 16, decision: Sequence[int | None] | None = None) -> Answer: ...
    def select_iteration(self, loop: LoopRV | str = ...) -> Answer: ...
    def set_axis_separator(self, block: BlockRV | str, buffer: Any, axis_separators: Sequence[int]) -> Answer: ...
    def set_scope(self, block: BlockRV | str, buffer_index: int | str | Buffer, storage_scope: str) -> Answer: ...
    def share_window(self, loop: LoopRV | str = ...) -> Answer: ...
    def shift_operand(self, block: BlockRV | str, operand: int | str | Buffer) -> Answer: ...
    def skew(self, outer: LoopRV | str, inner: LoopRV | str, factor: int = 1) -> Answer: ...
    def split(self, loop: LoopRV | str = ..., factors: Sequence[int | Expr | None] | None = None, preserve_unit_iters: bool = True, disable_predication: bool = False, *, factor: int | Expr | None = None, nparts: int | Expr | None = None, names: Sequence[str] | None = None, tail: str = 'guard') -> Answer: ...
    def stage(self, block: BlockRV | str, buffer: int | str | Buffer, loop: LoopRV | str = ..., storage_scope: str = 'local', *, unsafe: bool = False) -> Answer: ...
    def storage_align(self, block: BlockRV | str, buffer_index: int, axis: int, factor: int, offset: int) -> Answer: ...
    def storage_swizzle(self, block: BlockRV | str, buffer_index: int) -> Answer: ...
    @overload
    def tensorize(self, block_or_loop: LoopRV | str | BlockRV, tensor_intrin: Any, preserve_unit_iters: bool = True) -> Answer: ...
    @overload
    def tensorize(self, *, tensor_intrin: Any, preserve_unit_iters: bool = True) -> Answer: ...
    @overload
    def tile(self, where: list[LoopRV | str] | BlockRV | str, factors: Sequence[int | Expr | None | Sequence[int | Expr | None]], *, tail: str = 'guard', unsafe: bool = False) -> Answer: ...
    @overload
    def tile(self, *, factors: Sequence[int | Expr | None | Sequence[int | Expr | None]], tail: str = 'guard', unsafe: bool = False) -> Answer: ...
    def transform_block_layout(self, block: BlockRV | str, index_map: Any, *, unsafe: bool = False) -> Answer: ...
    def transform_layout(self, block: BlockRV | str, buffer: Any, index_map: Any, pad_value: Any = None, *, assume_injective_transform: bool = False) -> Answer: ...
    @overload
    def unannotate(self, block_or_loop: BlockRV | str | LoopRV, ann_key: str) -> Answer: ...
    @overload
    def unannotate(self, *, ann_key: str) -> Answer: ...
    def unroll(self, loop: LoopRV | str = ...) -> Answer: ...
    def unsafe_hide_buffer_access(self, block: BlockRV | str, buf_type: str, buf_index_array: Sequence[int]) -> Answer: ...
    def unsafe_set_dtype(self, block: BlockRV | str, buffer_index: int | str | Buffer, dtype: str) -> Answer: ...
    def unswitch(self, loop: LoopRV | str = ...) -> Answer: ...
    def vectorize(self, loop: LoopRV | str = ..., *, unsafe: bool = False) -> Answer: ...
    def work_on(self, func_name: str) -> Answer: ...
    @overload
    def write_at(self, loop: LoopRV | str, block: BlockRV | str, write_buffer_index: int | str | Buffer, storage_scope: str, *, unsafe: bool = False) -> Answer: ...
    @overload
    def write_at(self, *, block: BlockRV | str, write_buffer_index: int | str | Buffer, storage_scope: str, unsafe: bool = False) -> Answer: ...
ERROR_LEVELS = ('detail', 'fast', 'none')

class Schedule(Views):
    @property
    def can(self) -> Asker: ...
    def __init__(self, mod: PrimFunc | IRModule, *, seed: int | None=None, debug_mask: str | int | None=None, error_render_level: str='detail', enable_check: bool=True, target: Any=None, verify: str | None=None): ...
    def __getitem__(self, name: str) -> BlockRV | LoopRV: ...
    def get(self, handle: LoopRV | BlockRV | ExprRV | str | Any) -> For | Block | int: ...
    def get_sref(self, handle: LoopRV | BlockRV | str | For | Block) -> StmtSRef: ...
    def can_decompose_padding(self, block: BlockRV | str, loop: LoopRV | str) -> bool: ...
    def remove_rv(self, handle: Any) -> None: ...
    def get_sblock(self, name: str, func_name: str | None=None) -> BlockRV: ...
    def seed(self, seed: int) -> None: ...
    def fork_seed(self) -> int: ...
    def copy(self) -> Schedule: ...
    def explore(self) -> Any: ...
    def add_unit_loop(self, block_or_loop: BlockRV | str | LoopRV) -> LoopRV:
        """Put a loop of one iteration, called ``u``, around a loop or block. Returns it.

        Before, and after ``sch.add_unit_loop("B")``: docs/primitives.md.
        """
    def annotate(self, block_or_loop: BlockRV | str | LoopRV, ann_key: str, ann_val: Any) -> None:
        """Add the annotation ``ann_key`` = ``ann_val`` to a block or loop.

        ``ann_val`` is a string, number, expression, or lists and dicts of them. Annotations that lowering implements are
        checked: ``software_pipeline_stage`` and ``software_pipeline_order`` (one number for each statement of the loop's
        body; the order is a permutation; no statement before its dependences), ``software_pipeline_async_stages`` (a subset
        of the stages), ``double_buffer_scope`` (the number of a buffer that the block writes). Any other key may be used; an
        existing one gets the new value. Raises ``ScheduleError`` for an annotation that lowering could not implement, for
        ``private``, which ``privatize`` proves, and for a key that is a misspelled one of these and the other known ones.

        Before, and after ``sch.annotate("B", "note", 1)``: docs/primitives.md.
        """
    def annotate_buffer_access(self, block: BlockRV | str, buffer_index: int | str | Buffer, buf_type: str, gen_new_ranges: Any) -> None:
        """Declare the region of a buffer that ``block`` accesses, where you know it better than it can be inferred.

        ``gen_new_ranges(*iterators)`` gives for each axis an index, or a pair (begin, end). It is not checked: if the
        region omits an element that the block accesses, later steps may be wrong.

        Before, and after ``sch.annotate_buffer_access("B", 0, "read", lambda vi: [(vi, vi + 2)])``: docs/primitives.md.
        Raises ``ScheduleError`` when the number of ranges is not the number of axes.
        """
    def auto_inline(self, *blocks: BlockRV | str) -> None:
        """Inline those of ``blocks``, by default of all, that can be inlined: elementwise producers into their consumers.

        Blocks that cannot be inlined stay as they are; returns nothing.

        Before, and after ``sch.auto_inline()``: docs/primitives.md.
        """
    def bind(self, loop: LoopRV | str, thread_axis: str, *, unsafe: bool = False) -> None:
        """Run the iterations of a loop as threads (``threadIdx.x`` …), blocks (``blockIdx.x`` …) or ``vthread``.

        A loop bound to the axis of a loop around it distributes its work over the threads: that work must be the same in
        every iteration of the outer loop, in memory that all threads share (a tile copied to ``shared``), and the extents
        equal.

        A loop that is bound already gets the new axis.

        Raises ``ScheduleError`` when iterations depend on each other (a reduction across ``threadIdx`` may), when the
        axis has another extent in the same kernel, when it is bound twice on one path for other work, or past the target's
        limits. ``unsafe=True`` skips the check of dependences.

        Before, and after ``sch.bind("i", "threadIdx.x")``: docs/primitives.md.
        """
    def blockize(self, target: LoopRV | str | BlockRV | str | Sequence[BlockRV | str], preserve_unit_iters: bool = True, *, unsafe: bool = False) -> BlockRV:
        """Turn the loops from ``target`` inwards, and the block in them, into one block.

        Returns the new block, named ``…_o``; the block inside keeps its name. ``preserve_unit_iters`` keeps iterators of
        extent one in the outer block. Adjacent blocks, given as a list, become one block around all of them, without
        iterators of extent one.

        Before, and after ``sch.blockize("ii")``: docs/primitives.md.
        Raises ``ScheduleError`` when there is not exactly one block under ``target``, or its bindings cannot be divided
        into an outer and an inner part.
        """
    def cache_index(self, block: BlockRV | str, storage_scope: str, cse_thresh: int = 0) -> list[BlockRV]:
        """Compute the indices of what ``block`` reads ahead, into buffers in ``storage_scope``, and look them up; and so with
        the largest parts of what it stores that depend on iterators alone, as the weights of an interpolation do.

        With ``cse_thresh`` 0 every one that is not an iterator or a constant is precomputed; otherwise those
        subexpressions, largest first, that occur at least so often. Conditions stay, and expressions that read memory, or might
        divide by zero or shift too far. Each becomes a block ``index_0``, ``index_1`` … over the iterators that it uses, before the
        statement with ``block``. Returns these blocks; if there is nothing to compute, none, and the program is unchanged.

        The declared regions bound the accesses from there on; those of ``block`` and the blocks around it that do not hold
        what is accessed are widened. Raises ``ScheduleError`` for a negative threshold, or the root block.

        Before, and after ``sch.cache_index("B", "global")``: docs/primitives.md.
        """
    def cache_inplace(self, block: BlockRV | str, read_buffer_index: int | str | Buffer, storage_scope: str, *, unsafe: bool = False) -> list[BlockRV]:
        """Work on a copy of a buffer that ``block`` both reads and writes: copied in before, copied back after.

        Returns the two copying blocks.

        Before, and after ``sch.cache_inplace("A", 0, "local")``: docs/primitives.md.
        Raises ``ScheduleError`` when ``block`` does not do both, or another block in the same loops uses the buffer.
        """
    def cache_read(self, block: BlockRV | str, read_buffer_index: int | str | Buffer, storage_scope: str, consumer_blocks: list[BlockRV | str] | None = None, *, unsafe: bool = False) -> BlockRV:
        """Read a buffer through a copy in ``storage_scope``; returns the block that copies.

        ``read_buffer_index`` is the number of a region that ``block`` reads, or names the buffer. All consumers in the same
        scope read the copy, except other blocks that write the buffer, or only ``consumer_blocks``. The copy is placed as early as possible: at the start of the
        scope, or after the block that writes the buffer, in the innermost loop around both.

        Before, and after ``sch.cache_read("B", 0, "local")``: docs/primitives.md.
        Raises ``ScheduleError`` when the buffer is not read by ``block``, or is written between the copy and a consumer.
        """
    def cache_write(self, block: BlockRV | str, write_buffer_index: int | str | Buffer, storage_scope: str, consumer_blocks: list[BlockRV | str] | None = None, *, unsafe: bool = False) -> BlockRV:
        """Write a buffer through a copy in ``storage_scope``; returns the block that copies back.

        ``write_buffer_index`` is the number of a region that ``block`` writes, or names the buffer. ``block`` (and other
        blocks that accumulate into the same buffer) works on the copy, which is written back right after, in the innermost
        loop around it and the readers of the buffer; ``consumer_blocks`` then read the copy too. An in-place update,
        ``B[i] = B[i] + …``, still reads the buffer itself, because it reads nothing that it has written.

        Before, and after ``sch.cache_write("B", 0, "local")``: docs/primitives.md.
        Raises ``ScheduleError`` when the buffer is not written by ``block``, is also written or read in the init of the block
        around, or is read before it is written.
        """
    def compute_at(self, block: BlockRV | str, loop: LoopRV | str, preserve_unit_loops: bool = False, index: int = -1, *, unsafe: bool = False) -> None:
        """Move the producer ``block`` under ``loop``, where it is consumed, and compute just the region needed there.

        ``index`` is the position in the body of ``loop``: -1 just before the first consumer, -2 as early as the producers
        of ``block`` allow, otherwise the position itself. ``preserve_unit_loops`` keeps loops of extent one. Loops of the
        block below ``loop`` are called ``ax0``, ``ax1`` …

        Before, and after ``sch.compute_at("H", "B.i")``: docs/primitives.md.
        A block that writes ``shared`` memory computes what all threads around need, not one thread's part: loops bound to
        ``threadIdx`` and ``vthread`` count with all their iterations (for ``warp``, ``threadIdx.x``). Bind its own loops to
        the same axes again to distribute the work over the threads.

        Raises ``ScheduleError`` when no consumer is under ``loop``, or a consumer would read an element not yet written.
        """
    def compute_inline(self, block: BlockRV | str, *, unsafe: bool = False) -> None:
        """Substitute the expression that ``block`` stores for each load of it; removes the block and its buffer.

        A block whose buffer nothing reads is removed.

        Before, and after ``sch.compute_inline("H")``: docs/primitives.md.
        Raises ``ScheduleError`` for a reduction, a block of more than one store, an output of the function, a buffer with
        another writer, or when what the block reads is overwritten before a consumer runs.
        """
    def compute_root(self, block: BlockRV | str, *, unsafe: bool = False) -> None:
        """Move a block out of shared loops, into a loop nest of its own: the inverse of compute_at and reverse_compute_at.

        It is placed just before the statement that contained it, if that is legal, otherwise just after it.

        Before, and after ``sch.compute_root("H")``: docs/primitives.md.
        Raises ``ScheduleError`` when the block shares no loop, or needs what is computed in the loops that it leaves.
        """
    def decompose_padding(self, block: BlockRV | str, loop: LoopRV | str, *, unsafe: bool = False) -> BlockRV:
        """Decompose a block that pads: fill the entire output with the padding before ``loop``, then copy only the inside.

        The block stores ``T.if_then_else(inside, value, padding)`` (or ``T.Select``). The fill is a new block
        ``…_pad_const`` in copies of the loops from ``loop`` inwards; the block itself then runs only where the condition
        holds: over a smaller box if each conjunct bounds one iterator, otherwise under a predicate. Returns the fill block;
        the handle of the block then refers to the copy.

        Raises ``ScheduleError`` when the block is not of that form, when the condition always holds, when the padding reads memory, when two instances write
        one element, or when something else under ``loop`` uses the buffer and could tell: it may where the element alone says
        whether it is padding. ``unsafe=True`` skips the last two.

        Before, and after ``sch.decompose_padding("B", "i")``: docs/primitives.md.
        """
    def decompose_reduction(self, block: BlockRV | str, loop: LoopRV | str, *, unsafe: bool = False) -> BlockRV:
        """Decompose a reduction into its init, a block ``C_init`` just before ``loop``, and its update, ``C_update``.

        Returns the handle of the init block; the old handle then refers to the update.

        Before, and after ``sch.decompose_reduction("C", "k")``: docs/primitives.md.
        If a reduction loop is outside ``loop``, the init is guarded to run only in its first iteration. An empty reduction
        of symbolic size leaves its result unchanged; decomposed, it stores the value of the init.

        Raises ``ScheduleError`` when the block has no init, when the init uses a reduction iterator, when it does not run
        before all updates of the result, when another block under ``loop`` uses the result or writes what the init reads, when
        the block reads another result of its own and several are made under ``loop``, or when threads share the reduction and
        ``loop`` is inside of the first loop that it is over.
        """
    def double_scan(self, loop: LoopRV | str) -> list[BlockRV]:
        """Scan along ``loop`` in steps: of 2 elements, of these of 4, of 8 and so on; in each step, all results at once.

        The block scans, as for ``factor_scan``, and ``loop`` is the iterator's. A step combines each result with the one that is as many
        places before as the step before has combined, if there is one. There are more operations than in order, the logarithm of the
        length times as many, but each step runs as vectors. The grouping of terms changes, and nothing else, as in ``rfactor``.

        Returns the blocks of all steps but the last, named ``…_2``, ``…_4`` …, which the block itself is from now on.

        Before, and after ``sch.double_scan("i")``: docs/primitives.md.
        Raises ``ScheduleError`` when the block does not scan, when ``loop`` is not the iterator, of a constant length of 2 or more, or when
        the loops run anything else.
        """
    def enter_postproc(self) -> None:
        """Mark in the trace where the search's own steps end: a replay with ``remove_postproc=True`` stops here.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.row_sum(8, 16))
        >>> sch.parallel("i")
        >>> sch.enter_postproc()
        >>> sch.unroll("j")
        >>> again = tir.Schedule(tir.library.rows.row_sum(8, 16))
        >>> sch.trace.apply_to_schedule(again, remove_postproc=True)
        >>> again
        Schedule of main after 1 step
        """
    def factor_scan(self, loop: LoopRV | str) -> BlockRV:
        """Scan along ``loop`` anew in each iteration of the loop that it was split from, then add to each part what is before it.

        A block scans if each of its results combines the one before along an iterator with a new value, as
        ``B[i] = B[i - 1] + A[i]`` does, and selects the first by ``i == 0``. ``loop`` is the inner loop of a split of that
        iterator's. The scans of the parts are independent, in a new buffer with an axis of parts; so are the results of a part,
        to which the last one before it is added. The grouping of terms changes, and nothing else, as in ``rfactor``.

        Returns the block that scans the parts, named ``…_part``; the old handle refers to the block that makes the results.

        Before, and after ``sch.factor_scan("i_1")``: docs/primitives.md.
        Raises ``ScheduleError`` when the block does not scan, when ``loop`` and a loop around it are not the iterator's, in its
        order, or when the loops run anything else.
        """
    def fission(self, loop: LoopRV | str, at: int | Sequence[int] | None = None, *, unsafe: bool = False) -> list[LoopRV]:
        """Distribute a loop over the parts of its body: all iterations of the first part, then all of the next.

        ``at`` gives the statements of the body (counted from 0) before which to cut: a number or a list of them; by default
        every statement gets its own loop. Each loop keeps the range, kind and annotations. Returns the loops, in order.

        Raises ``ScheduleError`` when the body is a single statement, or when an earlier part in a later iteration writes
        what a later part accesses (with the two instances). ``unsafe=True`` skips the last check.

        Before, and after ``sch.fission("i")``: docs/primitives.md.
        """
    def fuse(self, *loops: LoopRV | str, preserve_unit_iters: bool = True, name: str | None = None) -> LoopRV:
        """Fuse perfectly nested loops, outermost first, into one loop over their product.

        The loop is called ``i_j_fused``, or ``name``. Returns it. Parallel loops give a parallel one; a single loop keeps
        its kind and annotations; a ``private`` clause of the innermost loop stays. Raises ``ScheduleError`` when there are statements between the loops, when the range of
        one depends on another, or when one of several is bound, annotated, or of another kind than the others.

        Before, and after ``sch.fuse("i", "j")``: docs/primitives.md.
        """
    def fuse_reduction_epilogue(self, reduction_block: BlockRV | str, epilogue_block: BlockRV | str, *, unsafe: bool = False) -> None:
        """Fuse ``epilogue_block``, which consumes the result of ``reduction_block``, into it; the epilogue block is
        removed.

        A bias added to a sum becomes the initial value of the sum, likewise for a product, a maximum or a minimum, and the
        intermediate buffer is removed. Any other epilogue (``relu``, a cast, a clip) runs in the last step of the
        reduction, which preserves its meaning; the intermediate buffer stays.

        Before, and after ``sch.fuse_reduction_epilogue("S", "B")``: docs/primitives.md.
        Raises ``ScheduleError`` when the first block is not a reduction, when its result has other readers, when the
        epilogue does not read each result once, or when what it reads or writes is accessed or changed in between.
        """
    def hoist(self, block: BlockRV | str, loop: LoopRV | str | None = None) -> None:
        """Hoist a loop-invariant condition of ``block`` out of ``loop``.

        A condition of ``block`` is an ``if`` around it or a conjunct of its predicate; ``unswitch`` takes the first
        condition under the loop, of any block. By default ``loop`` is the outermost loop that a condition can leave. If the
        loop contains other statements too, those outside an ``if`` are duplicated into both branches; a conjunct of a
        predicate stays, as it does not apply to them.

        Raises ``ScheduleError`` when there is no such condition, with the reason for each candidate.

        Before, and after ``sch.hoist("B", "j")``: docs/primitives.md.
        """
    def loop_partition(self, loop: LoopRV | str, factors: Sequence[int | Expr | None], preserve_unit_iters: bool = True) -> list[LoopRV]:
        """Partition a loop into consecutive loops of the lengths ``factors``; one may be None and takes the remainder.

        Without a None, the remainder becomes one more loop. The first piece keeps the names of its blocks, the others get
        ``_1``, ``_2`` …. Returns the loops, in order. Raises ``ScheduleError`` when the lengths exceed the loop's extent.

        Before, and after ``sch.loop_partition("i", [2, 64])``: docs/primitives.md.
        """
    def merge(self, *loops: LoopRV | str, unsafe: bool = False) -> LoopRV:
        """Fuse adjacent loop nests of equal ranges (loop fusion): each iteration runs the first's body, then the next's.

        ``loops`` are the innermost loops to merge, one of each nest, in program order. Returns the merged loop.
        Raises ``ScheduleError`` when the nests are not adjacent, are of different depth or range, or when an iteration
        of a later nest depends on a later iteration of an earlier one. ``unsafe=True`` skips the last check.

        Before, and after ``sch.merge("i", "j")``: docs/primitives.md.
        """
    def pad_einsum(self, block: BlockRV | str, padding: Sequence[int]) -> None:
        """Make the iterators of a block run to a multiple of ``padding``, over padded copies of the buffers it uses.

        ``padding`` has one factor for each iterator of the block; 1 means no padding. Where a padded iterator indexes a
        buffer, and in what the block writes, every index must be an iterator or a constant. A buffer that a padded iterator indexes is copied before, to ``…_pad``, with a value past
        the end that does not change the reduction (0 for a sum of products); one that is written is copied back after,
        without the padding. Sizes may be symbolic. Nothing changes if every extent is a multiple already.

        Raises ``ScheduleError`` when the block is not alone in loops bound to its iterators, the extent of one depends on
        another loop, an index is composite, the block might read out of bounds or divide by zero past a domain, or a padded
        element would change the result of a reduction.

        Before, and after ``sch.pad_einsum("C", [4, 1, 8])``: docs/primitives.md.
        """
    def parallel(self, loop: LoopRV | str, *, unsafe: bool = False) -> None:
        """Run the iterations of a loop on several cores in parallel.

        Raises ``ScheduleError`` when the loop carries a dependence (with the two instances). ``unsafe=True``
        skips that check.

        Before, and after ``sch.parallel("i")``: docs/primitives.md.
        """
    def prefetch(self, loop: LoopRV | str, block: BlockRV | str, read_buffer_index: int | str | Buffer, offset: int = 1, locality: int = 3) -> None:
        """Request, at the start of each iteration of ``loop``, the cache lines that are accessed ``offset`` iterations later.

        ``read_buffer_index`` is the number of a region that ``block`` reads, or names a buffer; what all blocks under ``loop`` read
        of it, or write where ``block`` does, is requested, one address a line of 64 bytes. ``locality`` is the cache that receives the lines: 3 the first,
        2 the second, 1 the third, 0 the one in which they displace least. Nothing is stored and no value changes: lines past the end of the buffer may be
        requested.

        Raises ``ScheduleError`` when ``loop`` is not above ``block`` or is vectorized, for a buffer that is not in global
        memory, for an ``offset`` below 1, another ``locality``, and where each iteration reads the same elements, or elements at loaded indices.

        Before, and after ``sch.prefetch("i", "C", "A", 2)``: docs/primitives.md.
        """
    def privatize(self, loop: LoopRV | str, buffer: str | Buffer, *, unsafe: bool = False) -> None:
        """Give each iteration of a loop a copy of ``buffer`` for itself, uninitialised when the iteration starts.

        ``buffer`` is a buffer, or the name of one, that a block around the loop allocates and that is used under the loop
        only. Iterations no longer share it, so that the loop can be made parallel; ``parallel`` and ``vectorize`` do it by
        themselves where the buffer is all that iterations share. The program says it by ``private=[…]``, and the executor,
        lowering and later steps go by that.

        Raises ``ScheduleError`` when an iteration reads of the buffer what it has not written itself, or when that cannot be
        shown; when the buffer is used outside of the loop; and for a loop bound to threads, whose own memory is told by its
        scope. ``unsafe=True`` skips the proof.

        Before, and after ``sch.privatize("i", "T1")``: docs/primitives.md.
        """
    def read_at(self, loop: LoopRV | str, block: BlockRV | str, read_buffer_index: int | str | Buffer, storage_scope: str, *, unsafe: bool = False) -> BlockRV:
        """Copy what an iteration of ``loop`` reads of a buffer to ``storage_scope``, by one block, and read the copy.

        ``read_buffer_index`` is the number of a region that ``block`` reads, or names the buffer. All blocks under ``loop``
        that read the buffer read the copy. The copying block, named after the copy and annotated ``auto_copy``, contains
        the loops over the window and is placed just before the first reader. Returns it.

        Raises ``ScheduleError`` when ``loop`` is not above ``block``, or an element is written between the copy and a read
        of it (with the two instances). ``unsafe=True`` skips the last check.

        Before, and after ``sch.read_at("i", "C", "A", "shared")``: docs/primitives.md.
        """
    def reindex(self, block: BlockRV | str, buffer: Any, *, unsafe: bool = False) -> BlockRV:
        """Give ``block`` a copy of a buffer indexed by its iterators; returns the block that copies.

        ``buffer`` is a name, or ``("read" | "write", number)`` of the regions of ``block``. The copy has one axis for each
        iterator that the buffer's indices depend on, in the block's order: not for one that drops out as an index
        simplifies, but an index that would become a constant is kept as it is written (``vi`` of one value, or
        ``vi // 4`` of four). It is named ``<buffer>_reindex``.

        Before, and after ``sch.reindex("C", ("read", 0))``: docs/primitives.md.
        Raises ``ScheduleError`` when ``block`` accesses the buffer at more than one element per instance, or when the
        buffer is written between the copy and ``block``.
        """
    def reindex_cache_read(self, block: BlockRV | str, read_buffer_index: int | str | Buffer, storage_scope: str, index_map: Any, *, unsafe: bool = False) -> BlockRV:
        """Read a buffer through a copy in ``storage_scope`` laid out by ``index_map(*iterators)``.

        Returns the block that copies.

        Before, and after ``sch.reindex_cache_read("B", 0, "shared", lambda i, j: (j, i))``: docs/primitives.md.
        Raises ``ScheduleError`` as ``reindex`` does, and when the map is not injective.
        """
    def reindex_cache_write(self, block: BlockRV | str, write_buffer_index: int | str | Buffer, storage_scope: str, index_map: Any, *, unsafe: bool = False) -> BlockRV:
        """Write a buffer through a copy in ``storage_scope`` laid out by ``index_map(*iterators)``.

        Returns the block that copies back.

        Before, and after ``sch.reindex_cache_write("B", 0, "local", lambda i, j: (j, i))``: docs/primitives.md.
        Raises ``ScheduleError`` as ``reindex`` does, and when the map is not injective.
        """
    def reorder(self, *loops: LoopRV | str, unsafe: bool = False) -> None:
        """Reorder loops of one nest, outermost first; loops of the nest that are not named keep their positions.

        Raises ``ScheduleError`` when the loops are not perfectly nested, when the range of one depends on another that
        would move inside it, or when a dependence would be reversed (with the two instances). ``unsafe=True`` skips the
        dependence check.

        Before, and after ``sch.reorder("j", "i")``: docs/primitives.md.
        """
    def reorder_block_iter_var(self, block: BlockRV | str, new_order: Sequence[int]) -> None:
        """Permute the iterators of a block; ``new_order[n]`` is the old position of the new ``n``-th iterator.

        The program computes the same; what changes is the meaning of positions (in ``tensorize`` or an index map).

        Before, and after ``sch.reorder_block_iter_var("B", [1, 0])``: docs/primitives.md.
        Raises ``ScheduleError`` when ``new_order`` is not a permutation of the iterators.
        """
    def reverse_compute_at(self, block: BlockRV | str, loop: LoopRV | str, preserve_unit_loops: bool = False, index: int = -1, *, unsafe: bool = False) -> None:
        """Move the consumer ``block`` under ``loop``, where its operands are produced, and consume just that region there.

        ``index`` is the position in the body of ``loop``: -1 as late as the consumers of ``block`` allow, -2 just after the
        last producer, otherwise the position itself. ``preserve_unit_loops`` keeps loops of extent one.

        Before, and after ``sch.reverse_compute_at("B", "H.i")``: docs/primitives.md.
        Raises ``ScheduleError`` when no producer is under ``loop``, or the move would read an element not yet written.
        """
    def reverse_compute_inline(self, block: BlockRV | str, *, unsafe: bool = False) -> None:
        """Inline ``block``, an elementwise consumer, into its only producer; removes the block and the intermediate buffer.

        Before, and after ``sch.reverse_compute_inline("B")``: docs/primitives.md.
        Of several producers the last is used. A producer whose domain exceeds the consumer's gets the consumer's bounds as
        its predicate. Inlining into a reduction is ``fuse_reduction_epilogue``. Raises ``ScheduleError`` when the producer
        has other consumers, or when the consumer does not read each element once or runs where the producer does not.
        """
    def rfactor(self, loop: LoopRV | str, factor_axis: int) -> BlockRV:
        """Factor the reduction along ``loop`` into partial results, which a second block reduces.

        The partial results are in a new buffer with the loop's extent as axis ``factor_axis`` (negative counts from the
        end). Returns the block that computes them, named ``…_rf``; the old handle refers to the block that combines them.

        Before, and after ``sch.rfactor("k", 0)``: docs/primitives.md.
        A block that reduces several values at once, as an arg-max does, gets one buffer of partial results for each.
        Partial results start from the block's own init if the combiner is idempotent (``x op x`` is ``x``), otherwise from
        the combiner's identity.

        The partial results are combined after all loops around the block; if another block in these loops uses the result,
        they are combined in the block's place, and computed before these loops, or where these make what they are made of,
        just before.

        Raises ``ScheduleError`` when the loop is not a reduction loop of one block, when the combiner does not commute, or
        when a reduction iterator takes a value more than once, so that init would run again.
        """
    def rolling_buffer(self, block: BlockRV | str, write_buffer_index: int | str | Buffer, *, unsafe: bool = False) -> None:
        """Turn a window that is recomputed in every iteration into a circular buffer that keeps the overlap.

        ``block`` computes a window of a buffer under a loop (``compute_at`` puts it there), and the next iteration's window
        overlaps it. The buffer's axis shrinks to the size of the window, indices are taken modulo that size, and ``block``
        runs only for elements that the previous iteration did not compute. If several axes move, the one of the outermost
        loop is folded; no element is computed twice. ``write_buffer_index`` is the number of a region that ``block``
        writes, or names the buffer.

        Raises ``ScheduleError`` when no window overlaps the next, when the buffer outlives its block or has another writer,
        when the loop is not serial, or when an element would be overwritten before it is read (with the instances).
        ``unsafe=True`` skips the last check.

        Before, and after ``sch.rolling_buffer("B", 0)``: docs/primitives.md.
        """
    def sample_categorical(self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None) -> Any:
        """Draw one of ``candidates`` with probabilities ``probs``; the trace records its index as ``decision``.

        Raises ``ScheduleError`` when the lists differ in length, a probability is negative or all are zero, or the decision
        is not an index.

        >>> import tir
        >>> from tir.script import tir as T
        >>> f = tir.script.parse('''
        ... @T.prim_func
        ... def f(A: T.Buffer((4,), "float32")):
        ...     for i in range(4):
        ...         with T.block("A"):
        ...             vi = T.axis.spatial(4, i)
        ...             A[vi] = T.float32(1)
        ... ''')
        >>> int(tir.Schedule(f, seed=1).sample_categorical([4, 8], [0.0, 1.0]))
        8
        """
    def sample_compute_location(self, block: BlockRV | str, decision: int | None = None) -> LoopRV:
        """Draw a compute location of ``block`` from all legal ones: a loop, the root, or inline.

        A loop is an argument for ``compute_at``, or for ``reverse_compute_at`` if nothing in its scope reads the block.
        Decision n is loop number n, from the outermost, around its first consumer (or last producer); -1 is the root, -2
        inline. Every legal location is equally likely; the trace records the ``decision``. Raises ``ScheduleError`` for an
        illegal decision, naming the legal ones, and for the root block.

        >>> import tir
        >>> from tir.script import tir as T
        >>> f = tir.script.parse('''
        ... @T.prim_func
        ... def f(A: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32")):
        ...     B = T.alloc_buffer((4, 4))
        ...     for i, j in T.grid(4, 4):
        ...         with T.block("B"):
        ...             vi, vj = T.axis.remap("SS", [i, j])
        ...             B[vi, vj] = A[vi, vj] + T.float32(1)
        ...     for i, j in T.grid(4, 4):
        ...         with T.block("C"):
        ...             vi, vj = T.axis.remap("SS", [i, j])
        ...             C[vi, vj] = B[vi, vj] * T.float32(2)
        ... ''')
        >>> sch = tir.Schedule(f)
        >>> place = sch.sample_compute_location("B", decision=0)
        >>> sch.compute_at("B", place)
        >>> [loop.name for loop in sch.get_loops("B")]
        ['i', 'ax0']
        """
    def sample_partitioned_tile(self, loop: LoopRV | str, n: int, partition_pos: int = 0, innerpart_factor: int = 1, decision: Sequence[int] | None = None) -> Any:
        """Draw ``n`` factors whose product is the extent of ``loop``, such that the product of those from ``partition_pos``
        on is a multiple of ``innerpart_factor``.

        Every such tiling is equally likely. The factors can be passed to ``split``; the trace records them as ``decision``.
        Raises ``ScheduleError`` for an extent that is not a constant multiple of ``innerpart_factor``, or a decision that
        breaks these rules.

        >>> import tir
        >>> from tir import te
        >>> A = te.placeholder((64,), name="A")
        >>> sch = tir.Schedule(te.create_prim_func([A, te.compute((64,), lambda i: A[i] * 2.0, "B")]), seed=0)
        >>> a, b, c = map(int, sch.sample_partitioned_tile("i", n=3, partition_pos=1, innerpart_factor=16))
        >>> a * b * c, b * c % 16
        (64, 0)
        """
    def sample_perfect_tile(self, loop: LoopRV | str, n: int, max_innermost_factor: int = 16, decision: Sequence[int | None] | None = None) -> Any:
        """Draw ``n`` factors whose product is the extent of ``loop``, the last at most ``max_innermost_factor``.

        Every such tiling is equally likely. The factors can be passed to ``split``; the trace records them as ``decision``.
        A loop of symbolic extent has one tiling: None, which ``split`` infers, then ones. Raises ``ScheduleError`` for a
        decision whose product is not the extent.

        >>> import tir
        >>> from tir import te
        >>> A = te.placeholder((16,), name="A")
        >>> sch = tir.Schedule(te.create_prim_func([A, te.compute((16,), lambda i: A[i] * 2.0, "B")]), seed=0)
        >>> outer, inner = sch.sample_perfect_tile("i", n=2, max_innermost_factor=4)
        >>> int(outer) * int(inner), int(inner) <= 4
        (16, True)
        >>> [loop.name for loop in sch.split("i", [outer, inner])]
        ['i_0', 'i_1']
        """
    def select_iteration(self, loop: LoopRV | str) -> None:
        """Run, instead of ``loop``, the one iteration in which the term of a reduction counts.

        In the loop is one block, in loops of its own, whose only store combines a result with ``T.if_then_else(at == v, term, identity)``, or
        the like with more conditions, or an integer that is converted from ``at == v``: ``v`` is the iterator that the loop is bound to, and ``at`` the same for all
        iterations. As all others would leave the results as they are, an ``if`` whether ``at`` is one of the iterations takes the place of the loop. So
        a scatter, a histogram or a lookup that is written as a sum of what a condition selects takes no more steps than one that is not.

        Raises ``ScheduleError`` when the loop is not serial or has anything else in it, when the block has a ``T.init()`` or a predicate, when no such equality
        decides its term, or ``at`` changes with loops inside, with what the block writes, or might be read out of bounds. A sum of floating-point numbers that is -0.0 stays so.

        Before, and after ``sch.select_iteration("b")``: docs/primitives.md.
        """
    def set_axis_separator(self, block: BlockRV | str, buffer: Any, axis_separators: Sequence[int]) -> None:
        """Split the axes of a buffer into groups, each of which flattening turns into one physical axis.

        ``buffer`` is a name, or ``("read" | "write", number)``. Raises ``ScheduleError`` for separators that do not
        increase within the rank, and for a buffer that declares its strides.

        Before, and after ``sch.set_axis_separator("H", "H", [1])``: docs/primitives.md.
        """
    def set_scope(self, block: BlockRV | str, buffer_index: int | str | Buffer, storage_scope: str) -> None:
        """Put a buffer that ``block`` writes (number or name) into ``storage_scope``.

        Before, and after ``sch.set_scope("H", 0, "shared")``: docs/primitives.md.
        Raises ``ScheduleError`` for a parameter buffer, or a scope that does not exist.
        """
    def share_window(self, loop: LoopRV | str) -> list[BlockRV]:
        """Compute what windows of a sliding reduction have in common once: of 2 terms, of these of 4, of 8 and so on.

        ``loop`` runs through the terms of a window, which depend on it and on one iterator of the results only by
        ``i + step * k``. Partial results of two terms, of four and so on, up to the largest power of two in the window,
        are computed for every place, each from two of those before; a result is made of at most one of each. A window of 31
        takes 8 operations instead of 31. Where the combiner is idempotent (``max``), two of the largest cover the window.
        The grouping of terms changes, and nothing else, as in ``rfactor``.

        Returns the blocks that compute partial results, named ``…_2``, ``…_4`` …; the old handle refers to the block that
        makes results of them, which is no reduction any more.

        Before, and after ``sch.share_window("k")``: docs/primitives.md.
        Raises ``ScheduleError`` when the block is not one whole reduction over ``loop`` alone, when windows are no slides
        of one another, or when the loops run anything else.
        """
    def shift_operand(self, block: BlockRV | str, operand: int | str | Buffer) -> None:
        """Store an integer operand of a sum of products with the other sign, moved by half of its range: int8 as uint8, 128 more.

        ``operand`` is the number of a region that ``block`` reads, or names the buffer. It is copied before, to ``…_shifted``; the sums go to
        ``…_shifted`` too, and the products of what was added, ``… * 128``, which are summed once for all results that have the same other
        factors, are taken off. As integers wrap around, results are the same for all values. So bytes of any two signs are multiplied by
        instructions that take one operand with a sign and one without (VNNI).

        Raises ``ScheduleError`` when the block is not alone in loops bound to its iterators, is no sum from 0 of products of integers with one
        factor ``T.cast(A[…], …)`` of that operand, or stores its results elsewhere than at its iterators, or constants.

        Before, and after ``sch.shift_operand("C", "B")``: docs/primitives.md.
        """
    def skew(self, outer: LoopRV | str, inner: LoopRV | str, factor: int = 1) -> LoopRV:
        """Skew ``inner`` by ``factor`` for each iteration of ``outer``: its new variable is ``inner + factor * outer``.

        The loop runs over the union of the shifted ranges, with a predicate, so that the two can be reordered afterwards:
        a stencil over time then runs in wavefronts. The order of iterations does not change, so skew is always legal.
        Returns the new loop.

        Before, and after ``sch.skew("t", "i", 1)``: docs/primitives.md.
        """
    def split(self, loop: LoopRV | str, factors: Sequence[int | Expr | None] | None = None, preserve_unit_iters: bool = True, disable_predication: bool = False, *, factor: int | Expr | None = None, nparts: int | Expr | None = None, names: Sequence[str] | None = None, tail: str = 'guard') -> list[LoopRV]:
        """Split a loop into a nest of loops whose extents are ``factors``, outermost first.

        One factor may be None and is inferred; ``factor=32`` stands for ``[None, 32]``, ``nparts=4`` for ``[4, None]``.
        If the factors do not divide the extent, ``tail`` selects what happens: ``"guard"`` masks the extra iterations with
        a predicate on the blocks below, ``"cut"`` runs the remainder in a separate loop afterwards, ``"exact"`` refuses.
        ``disable_predication`` omits the guard; the caller asserts that the factors divide. ``names`` are the names of the
        new loops (default ``i_0``, ``i_1`` …). With ``preserve_unit_iters=False`` loops of one iteration vanish from
        bindings. The innermost new loop inherits a ``private`` clause.

        Returns the new loops, outermost first (with ``"cut"``: those of the main part). Raises ``ScheduleError`` for a loop
        that is bound, annotated or not serial, and for factors that lose iterations.

        Before, and after ``sch.split("i", [None, 32])``: docs/primitives.md.
        """
    def stage(self, block: BlockRV | str, buffer: int | str | Buffer, loop: LoopRV | str, storage_scope: str = 'local', *, unsafe: bool = False) -> BlockRV:
        """Make the blocks under ``loop`` work on a copy of the window of ``buffer`` that an iteration needs.

        ``buffer`` is the name of a buffer that ``block`` reads or writes, or the number of a region that it reads. A buffer
        that is read is copied before use, for all blocks under ``loop`` that read it (``cache_read``, then ``compute_at``);
        one that is written is copied back after (``cache_write``, then ``reverse_compute_at``). The size of the window is
        inferred. Returns the block that copies.

        Raises ``ScheduleError`` when ``loop`` is not above ``block``, and as those four do; ``unsafe=True`` is passed to
        them.

        Before, and after ``sch.stage("B", "A", "i", "local")``: docs/primitives.md.
        """
    def storage_align(self, block: BlockRV | str, buffer_index: int, axis: int, factor: int, offset: int) -> None:
        """Make the stride of ``axis`` of a written buffer ≡ ``offset`` modulo ``factor`` (elements), by padding.

        With factor 32 and offset 1 the rows of a 32-wide shared tile start in different banks. Raises ``ScheduleError``
        for an axis the buffer does not have, or a factor that is not positive. The annotation takes effect when the buffer
        gets its final shape: rows of 8 elements, as here, then begin 9 elements apart.

        Before, and after ``sch.storage_align("H", 0, 0, 8, 1)``: docs/primitives.md.
        """
    def storage_swizzle(self, block: BlockRV | str, buffer_index: int) -> None:
        """Permute the 16-byte pieces of each row of a written buffer in shared memory: XOR of column and row number.

        The pieces of a column then lie in different banks, without padding: copies of 16 bytes and ``ldmatrix`` have no
        bank conflicts. The annotation takes effect when lowering for a GPU: the program's indices stay as they are, the
        kernel's become ``j ^ i % 8 * p`` with pieces of p elements. The rows of the allocated buffer must have 2, 4 or a
        multiple of 8 pieces, and their number must be a multiple of 8.

        Before, and after ``sch.storage_swizzle("H", 0)``: docs/primitives.md.
        Raises ``ScheduleError`` for a buffer that is not in shared memory, has one axis, or has ``storage_align``.
        """
    def tensorize(self, block_or_loop: LoopRV | str | BlockRV, tensor_intrin: Any, preserve_unit_iters: bool = True) -> None:
        """Replace a block, or the loops from one inwards, by the implementation of a tensor intrinsic.

        ``tensor_intrin`` is a name registered with ``TensorIntrin.register``, or a ``TensorIntrin``. A loop is blockized
        first, and the loops below it are reordered to match the intrinsic where that is legal. The computation must equal
        the intrinsic's description; the error shows the first difference.

        Raises ``ScheduleError`` when it does not, and for a name that is not registered.

        Before, and after ``sch.tensorize("j", "zero_4")``: docs/primitives.md.
        """
    def tile(self, where: list[LoopRV | str] | BlockRV | str, factors: Sequence[int | Expr | None | Sequence[int | Expr | None]], *, tail: str = 'guard', unsafe: bool = False) -> list[LoopRV]:
        """Split several loops and move their outer parts outside all inner ones: ``split`` and ``reorder`` in one step.

        ``where`` is a list of loops of one nest, or a block: then its innermost loops, as many as there are factors.
        A factor is a tile size, or a list of sizes for several levels. ``tail`` is as for ``split``. Returns the loops,
        outermost first. Raises ``ScheduleError`` as ``split`` and ``reorder`` do; ``unsafe=True`` is passed to ``reorder``.

        Before, and after ``sch.tile(["i", "j"], [4, 8])``: docs/primitives.md.
        """
    def transform_block_layout(self, block: BlockRV | str, index_map: Any, *, unsafe: bool = False) -> None:
        """Give a block the iterators ``index_map(*iterators)``, with one loop for each.

        The map must be a bijection onto a box; an index of spatial iterators is spatial, of reduction iterators a
        reduction.

        Before, and after ``sch.transform_block_layout("B", lambda i, j: (i * 4 + j,))``: docs/primitives.md.
        Raises ``ScheduleError`` when the map is not a bijection onto a box or mixes spatial and reduction iterators, when
        the loops around contain other statements or do not run the block once for each value of its iterators, or when the
        new order of iterations would violate a dependence.
        """
    def transform_layout(self, block: BlockRV | str, buffer: Any, index_map: Any, pad_value: Any = None, *, assume_injective_transform: bool = False) -> None:
        """Move every element ``[i, j, …]`` of a buffer to ``index_map(i, j, …)``, and rewrite every access in the function.

        ``buffer`` is a name, or ``("read" | "write", number)`` of the regions of ``block``. A parameter changes the
        function's interface: the caller passes the new layout. ``IndexMap.AXIS_SEPARATOR`` in the result of the map starts
        a new group of axes.

        Positions that no element maps to are undefined, and nothing reads them. With ``pad_value`` (a number, or a function
        of the new indices) a block after the last writer stores it there; for a buffer that nothing writes, the caller must
        have stored it, and an assumption is added that says so.

        Before, and after ``sch.transform_layout("H", ("write", 0), lambda i, j: (i // 4, j, i % 4))``: docs/primitives.md.
        Raises ``ScheduleError`` when the map is not injective (``assume_injective_transform`` skips this check), when an
        index can be negative, and when the buffer is also accessed through its pointer.
        """
    def unannotate(self, block_or_loop: BlockRV | str | LoopRV, ann_key: str) -> None:
        """Remove the annotation ``ann_key`` from a block or loop. Raises ``ScheduleError`` when there is none, and for
        ``private`` of a loop whose iterations do not run one after the other.

        Before, and after ``sch.unannotate("i", "note")``: docs/primitives.md.
        """
    def unroll(self, loop: LoopRV | str) -> None:
        """Write the iterations of a loop out one after another when it is lowered. Always legal; a loop that is bound to
        threads is no longer.

        Before, and after ``sch.unroll("i")``: docs/primitives.md.
        """
    def unsafe_hide_buffer_access(self, block: BlockRV | str, buf_type: str, buf_index_array: Sequence[int]) -> None:
        """Remove regions from a block's declared reads or writes; ``buf_index_array`` has their numbers.

        Unsafe, as the name says: later steps no longer see the dependences through them.

        Before, and after ``sch.unsafe_hide_buffer_access("B", "read", [1])``: docs/primitives.md.
        Raises ``ScheduleError`` for a number without a region.
        """
    def unsafe_set_dtype(self, block: BlockRV | str, buffer_index: int | str | Buffer, dtype: str) -> None:
        """Store a buffer that ``block`` writes in another type; values are cast when stored and back when loaded.

        Unsafe, as the name says: precision and range change. Raises ``ScheduleError`` for a parameter buffer, and for one whose
        address a call has, which expects elements of the old type.

        Before, and after ``sch.unsafe_set_dtype("H", 0, "float16")``: docs/primitives.md.
        """
    def unswitch(self, loop: LoopRV | str) -> None:
        """Hoist a loop-invariant condition out of the loop.

        Takes the first ``if`` under ``loop`` whose condition neither uses a loop variable from ``loop`` inwards nor reads
        what is written there; the rest of the body is duplicated into both branches, the copied blocks renamed. If there is
        no such ``if``, takes the invariant conjuncts from the predicate of the only block of the nest.

        Raises ``ScheduleError`` when there is no such condition, with the reason for each candidate.

        Before, and after ``sch.unswitch("i")``: docs/primitives.md.
        """
    def vectorize(self, loop: LoopRV | str, *, unsafe: bool = False) -> None:
        """Run the iterations of a loop as the lanes of vector instructions.

        Raises ``ScheduleError`` when the loop carries a dependence (with the two instances). ``unsafe=True``
        skips that check.

        Before, and after ``sch.vectorize("i")``: docs/primitives.md.
        """
    def work_on(self, func_name: str) -> None:
        """Look names up in the function ``func_name`` from now on.

        Of a module without ``main``, a name that several functions have is refused until then. A step like any other, so that the trace replays on modules of several functions. Handles go on standing for what
        they stood for. Raises ``ScheduleError`` when there is no such function.

        >>> import tir
        >>> zero = tir.script.parse('''
        ... @T.prim_func
        ... def zero(A: T.Buffer((4,), "float32")):
        ...     for i in range(4):
        ...         with T.block("A"):
        ...             vi = T.axis.spatial(4, i)
        ...             A[vi] = T.float32(0)
        ... ''')
        >>> sch = tir.Schedule(tir.IRModule({"zero": zero, "again": zero}))
        >>> sch.work_on("again")
        >>> sch.func_working_on
        'again'
        """
    def write_at(self, loop: LoopRV | str, block: BlockRV | str, write_buffer_index: int | str | Buffer, storage_scope: str, *, unsafe: bool = False) -> BlockRV:
        """Make what an iteration of ``loop`` writes of a buffer in ``storage_scope``, and copy it back by one block.

        ``write_buffer_index`` is the number of a region that ``block`` writes, or names the buffer. All blocks under
        ``loop`` that write the buffer work on the copy, and so do readers between them. The copying block, annotated
        ``auto_copy``, is placed just after the last writer. Returns it.

        Raises ``ScheduleError`` when ``loop`` is not above ``block``, when the copy would be read or written back where it
        is uninitialised, or when another block writes an element meanwhile. ``unsafe=True`` skips these checks.

        Before, and after ``sch.write_at("i", "C", 0, "local")``: docs/primitives.md.
        """
    def get_block(self, name: str, func_name: str | None = None) -> BlockRV:
        """The block called ``name``, in ``func_name`` (default: the function worked on).

        Raises ``ScheduleError`` that lists the existing blocks, or the functions of which several have that name.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
        >>> sch.get_block("out")
        BlockRV(out)
        >>> sch.get_block("none")
        Traceback (most recent call last):
            ...
        tir.errors.ScheduleError: get_block("none"): block `none` is not in function `main`
        legal: root, most, power, total, scale, out
        """
    def get_loops(self, block: BlockRV | str) -> list[LoopRV]:
        """The loops above ``block``, outermost first, up to the block that encloses it.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
        >>> sch.get_loops("out")
        [LoopRV(i), LoopRV(j)]
        """
    def get_child_blocks(self, block_or_loop: BlockRV | str | LoopRV) -> list[BlockRV]:
        """The blocks directly inside a block, or under a loop (not those inside them).

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
        >>> sch.get_child_blocks("root")
        [BlockRV(most), BlockRV(power), BlockRV(total), BlockRV(scale), BlockRV(out)]
        """
    def get_producers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks of the same scope that write what ``block`` reads, in the order of its reads.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
        >>> sch.get_producers("out")
        [BlockRV(power), BlockRV(scale)]
        """
    def get_consumers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks of the same scope that read what ``block`` writes.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
        >>> sch.get_consumers("power")
        [BlockRV(total), BlockRV(out)]
        """
    def get_output_blocks(self, scope_block: BlockRV | str) -> list[BlockRV]:
        """The blocks inside ``scope_block``, blocks inside blocks as well, that write a buffer which outlives it: neither one
        allocated there nor a view of such a one.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
        >>> sch.get_output_blocks("root")
        [BlockRV(out)]
        """
