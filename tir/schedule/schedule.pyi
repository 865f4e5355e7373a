"""Made by ``python -m tir.schedule.stubs``; do not edit."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..function import IRModule, PrimFunc
from ..stmt import Block, For
from ..target import Target
from .handles import BlockRV, ExprRV, LoopRV
from .state import State
from .trace import Trace

ERROR_LEVELS = ('detail', 'fast', 'none')

@dataclasses.dataclass(frozen=True)
class Step:
    number: int
    text: str
    mod: IRModule

class Answer:
    def __init__(self, error: Exception | None, legal: list[str] | None=None, refused: dict[str, str] | None=None): ...
    def __bool__(self) -> bool: ...
    @property
    def reason(self) -> str: ...

class Asker:
    def __init__(self, sch: Schedule): ...
    def add_unit_loop(self, block_or_loop: BlockRV | str | LoopRV) -> Answer:
        """Put a loop of one iteration, called ``u``, around a loop or block. Returns it.

        Before, and after ``sch.add_unit_loop("B")``::

            with T.block("B"):
                B[0] = A[0] * 2.0

            for u in range(1):
                with T.block("B"):
                    B[0] = A[0] * 2.0
        """
    def annotate(self, block_or_loop: BlockRV | str | LoopRV, ann_key: str, ann_val: Any) -> Answer:
        """Put the note ``ann_key`` = ``ann_val`` on a block or loop.

        ``ann_val`` is a string, number, expression, or lists and dicts of them. Raises ``ScheduleError`` when the key is
        there already: unannotate first.

        Before, and after ``sch.annotate("B", "note", 1)``::

            with T.block("B"):
                vi = T.axis.spatial(4, i)

            with T.block("B"):
                vi = T.axis.spatial(4, i)
                T.block_attr({"note": 1})
        """
    def bind(self, loop: LoopRV | str, thread_axis: str, *, unsafe: bool = False) -> Answer:
        """Run the iterations of a loop as the threads (``threadIdx.x`` …), blocks (``blockIdx.x`` …) or virtual threads
        (``vthread``) of a GPU kernel.

        Raises ``ScheduleError`` when iterations depend on each other (a reduction across ``threadIdx`` is allowed), when the
        axis has another extent in the same kernel, when it is bound twice on one path, or past the target's limits.
        ``unsafe=True`` skips the check of dependences.

        Before, and after ``sch.bind("i", "threadIdx.x")``::

            for i in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi] * 2.0

            for i in T.thread_binding(4, thread="threadIdx.x"):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi] * 2.0
        """
    def decompose_reduction(self, block: BlockRV | str, loop: LoopRV | str, *, unsafe: bool = False) -> Answer:
        """Split the initialisation off a reduction: a block ``C_init`` just before ``loop``, and ``C_update`` in its place.

        Returns the handle of the init block; the old handle then means the update.

        Before → after, for ``sch.decompose_reduction("C", "k")``::

            for i, k in T.grid(8, 8):                for i in range(8):
                with T.block("C"):                       with T.block("C_init"):
                    vi, vk = ...                             C[vi] = 0.0
                    with T.init():                       for k in range(8):
                        C[vi] = 0.0                          with T.block("C_update"):
                    C[vi] = C[vi] + A[vi, vk]                    C[vi] = C[vi] + A[vi, vk]

        Raises ``ScheduleError`` when the block has no init, when a reduction loop is outside ``loop`` (the init would run
        again in the middle of the sum), or when something else under ``loop`` uses the result.
        """
    def fuse(self, *loops: LoopRV | str, preserve_unit_iters: bool = True, name: str | None = None) -> Answer:
        """Join perfectly nested loops, outermost first, into one loop over their product.

        The loop is called ``i_j_fused``, or ``name``. Returns it. Raises ``ScheduleError`` when something stands between
        the loops, when the range of one depends on another, or when one is bound, marked or annotated.

        Before, and after ``sch.fuse("i", "j")``::

            for i, j in T.grid(4, 8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * 2.0

            for i_j_fused in range(32):
                with T.block("B"):
                    vi = T.axis.spatial(4, i_j_fused // 8)
                    vj = T.axis.spatial(8, i_j_fused % 8)
                    B[vi, vj] = A[vi, vj] * 2.0
        """
    def loop_partition(self, loop: LoopRV | str, factors: Sequence[Any], preserve_unit_iters: bool = True) -> Answer:
        """Cut a loop into consecutive loops of the lengths ``factors``; one may be None and takes what is left.

        Without a None, what is left becomes one more loop. The first piece keeps the names of its blocks, the others get
        ``_1``, ``_2`` …. Returns the loops, in order. Raises ``ScheduleError`` when the lengths exceed the loop's.

        Before, and after ``sch.loop_partition("i", [2, 64])``::

            for i in range(128):
                with T.block("B"):
                    vi = T.axis.spatial(128, i)
                    B[vi] = A[vi] * 2.0

            for i_0 in range(2):
                with T.block("B"):
                    vi = T.axis.spatial(128, i_0)
                    B[vi] = A[vi] * 2.0
            for i_1 in range(2, 66):
                with T.block("B_1"):
                    vi = T.axis.spatial(128, i_1)
                    B[vi] = A[vi] * 2.0
            for i_2 in range(66, 128):
                with T.block("B_2"):
                    vi = T.axis.spatial(128, i_2)
                    B[vi] = A[vi] * 2.0
        """
    def merge(self, *loops: LoopRV | str, unsafe: bool = False) -> Answer:
        """Run neighbouring loop nests of equal ranges as one: iteration by iteration, the first's body, then the next's.

        ``loops`` are the innermost loops to merge, one of each nest, in program order. Returns the merged loop. Raises
        ``ScheduleError`` when the nests are not neighbours, are of different depth or range, or when an iteration of a later
        nest needs what a later iteration of an earlier one makes. ``unsafe=True`` skips the last check.

        Before, and after ``sch.merge("i", "j")``::

            for i in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi] * 2.0
            for j in range(4):
                with T.block("C"):
                    vi = T.axis.spatial(4, j)
                    C[vi] = B[vi] + 1.0

            for i_j_m in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i_j_m)
                    B[vi] = A[vi] * 2.0
                with T.block("C"):
                    vi = T.axis.spatial(4, i_j_m)
                    C[vi] = B[vi] + 1.0
        """
    def parallel(self, loop: LoopRV | str, *, unsafe: bool = False) -> Answer:
        """Run the iterations of a loop on several cores at once.

        Raises ``ScheduleError`` when one iteration writes what another reads or writes (with the two). ``unsafe=True``
        skips that check.

        Before, and after ``sch.parallel("i")``::

            for i in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi] * 2.0

            for i in T.parallel(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi] * 2.0
        """
    def reorder(self, *loops: LoopRV | str, unsafe: bool = False) -> Answer:
        """Put loops of one nest in the given order, outermost first; loops of the nest not named stay where they are.

        Raises ``ScheduleError`` when the loops are not perfectly nested, when the range of one depends on another that
        would move inside it, or when a dependence would be reversed (with the two instances). ``unsafe=True`` skips the
        last check.

        Before, and after ``sch.reorder("j", "i")``::

            for i, j in T.grid(4, 8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * 2.0

            for j, i in T.grid(8, 4):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * 2.0
        """
    def sample_categorical(self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None) -> Answer:
        """Draw one of ``candidates`` with probabilities ``probs``; the trace keeps which (an index) as ``decision``.

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
    def sample_perfect_tile(self, loop: LoopRV | str, n: int, max_innermost_factor: int = 16, decision: Sequence[int] | None = None) -> Answer:
        """Draw ``n`` factors whose product is the extent of ``loop``, the last at most ``max_innermost_factor``.

        Every such tiling is equally likely. The factors go to ``split``; the trace keeps them as ``decision``. Raises
        ``ScheduleError`` for an extent that is not a constant, or a decision that does not multiply to it.
        """
    def set_axis_separator(self, block: BlockRV | str, buffer: Any, axis_separators: Sequence[int]) -> Answer:
        """Split the axes of a buffer into groups that flattening makes one physical axis each.

        ``buffer`` is a name, or ``("read" | "write", number)``. Raises ``ScheduleError`` for separators that do not
        increase within the rank.
        """
    def set_scope(self, block: BlockRV | str, buffer_index: int | str, storage_scope: str) -> Answer:
        """Put a buffer that ``block`` writes (number or name) into ``storage_scope``.

        Before → after, for ``sch.set_scope("B", 0, "shared")``::

            B = T.alloc_buffer((8,))                 B = T.alloc_buffer((8,), scope="shared")

        Raises ``ScheduleError`` for a parameter buffer, or a scope that does not exist.
        """
    def split(self, loop: LoopRV | str, factors: Sequence[Any] | None = None, preserve_unit_iters: bool = True, disable_predication: bool = False, *, factor: Any = None, nparts: Any = None, names: Sequence[str] | None = None, tail: str = 'guard') -> Answer:
        """Take one loop apart into a nest of loops whose extents are ``factors``, outermost first.

        One factor may be None and is inferred; ``factor=32`` stands for ``[None, 32]``, ``nparts=4`` for ``[4, None]``.
        Where the factors do not divide the extent, ``tail`` says what happens: ``"guard"`` makes the extra iterations do
        nothing (a predicate on the blocks below), ``"cut"`` runs the rest in a loop of its own after, ``"exact"`` refuses.
        ``disable_predication`` leaves out the guard: on your word that the factors divide. ``names`` name the new loops
        (default ``i_0``, ``i_1`` …). With ``preserve_unit_iters=False`` loops of one iteration vanish from bindings.

        Returns the new loops, outermost first (with ``"cut"``: of the main part). Raises ``ScheduleError`` for a loop that
        is bound, marked or annotated, and for factors that lose iterations.

        Before, and after ``sch.split("i", [None, 32])``::

            for i in range(100):
                with T.block("B"):
                    vi = T.axis.spatial(100, i)
                    B[vi] = A[vi] * 2.0

            for i_0, i_1 in T.grid(4, 32):
                with T.block("B"):
                    vi = T.axis.spatial(100, i_0 * 32 + i_1)
                    T.where(i_0 * 32 + i_1 < 100)
                    B[vi] = A[vi] * 2.0
        """
    def storage_align(self, block: BlockRV | str, buffer_index: int, axis: int, factor: int, offset: int) -> Answer:
        """Make the stride of ``axis`` of a written buffer ≡ ``offset`` modulo ``factor`` (elements), by padding.

        With factor 32 and offset 1 the rows of a 32-wide shared tile start in different banks. Raises ``ScheduleError``
        for an axis the buffer does not have, or a factor that is not positive.
        """
    def unannotate(self, block_or_loop: BlockRV | str | LoopRV, ann_key: str) -> Answer:
        """Take the note ``ann_key`` off a block or loop. Raises ``ScheduleError`` when it is not there.
        """
    def unroll(self, loop: LoopRV | str) -> Answer:
        """Write the iterations of a loop out one after another when it is lowered. Always legal.

        Before, and after ``sch.unroll("i")``::

            for i in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi] * 2.0

            for i in T.unroll(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi] * 2.0
        """
    def unsafe_set_dtype(self, block: BlockRV | str, buffer_index: int | str, dtype: str) -> Answer:
        """Store a buffer that ``block`` writes in another type; values are cast when stored and back when loaded.

        Unsafe by name: precision and range change. Raises ``ScheduleError`` for a parameter buffer.
        """
    def vectorize(self, loop: LoopRV | str, *, unsafe: bool = False) -> Answer:
        """Run the iterations of a loop as the lanes of vector instructions.

        Raises ``ScheduleError`` when one iteration writes what another reads or writes (with the two). ``unsafe=True``
        skips that check.

        Before, and after ``sch.vectorize("i")``::

            for i in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi] * 2.0

            for i in T.vectorized(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi] * 2.0
        """

class Schedule:
    def __init__(self, mod: PrimFunc | IRModule, *, seed: int | None=None, debug_mask: str | int | None=None, error_render_level: str='detail', enable_check: bool=True, target: Any=None, verify: str | None=None): ...
    @property
    def state(self) -> State: ...
    @property
    def mod(self) -> IRModule: ...
    @property
    def func(self) -> PrimFunc: ...
    @property
    def func_working_on(self) -> str: ...
    @property
    def target(self) -> Target | None: ...
    @property
    def trace(self) -> _trace.Trace: ...
    @property
    def history(self) -> list[Step]: ...
    @property
    def can(self) -> Asker: ...
    def work_on(self, func_name: str) -> None: ...
    def get(self, handle: LoopRV | BlockRV | ExprRV | Any) -> For | Block | int: ...
    def remove_rv(self, handle: Any) -> None: ...
    def copy(self) -> Schedule: ...
    def undo(self, steps: int=1) -> None: ...
    def redo(self, steps: int=1) -> None: ...
    def reset(self) -> None: ...
    def seed(self, seed: int) -> None: ...
    def fork_seed(self) -> int: ...
    def show(self, **options: Any) -> None: ...
    def script(self, **options: Any) -> str: ...
    def diff(self, step: int=-1, context: int=3, color: bool | None=None) -> str: ...
    def add_unit_loop(self, block_or_loop: BlockRV | str | LoopRV) -> LoopRV:
        """Put a loop of one iteration, called ``u``, around a loop or block. Returns it.

        Before, and after ``sch.add_unit_loop("B")``::

            with T.block("B"):
                B[0] = A[0] * 2.0

            for u in range(1):
                with T.block("B"):
                    B[0] = A[0] * 2.0
        """
    def annotate(self, block_or_loop: BlockRV | str | LoopRV, ann_key: str, ann_val: Any) -> None:
        """Put the note ``ann_key`` = ``ann_val`` on a block or loop.

        ``ann_val`` is a string, number, expression, or lists and dicts of them. Raises ``ScheduleError`` when the key is
        there already: unannotate first.

        Before, and after ``sch.annotate("B", "note", 1)``::

            with T.block("B"):
                vi = T.axis.spatial(4, i)

            with T.block("B"):
                vi = T.axis.spatial(4, i)
                T.block_attr({"note": 1})
        """
    def bind(self, loop: LoopRV | str, thread_axis: str, *, unsafe: bool = False) -> None:
        """Run the iterations of a loop as the threads (``threadIdx.x`` …), blocks (``blockIdx.x`` …) or virtual threads
        (``vthread``) of a GPU kernel.

        Raises ``ScheduleError`` when iterations depend on each other (a reduction across ``threadIdx`` is allowed), when the
        axis has another extent in the same kernel, when it is bound twice on one path, or past the target's limits.
        ``unsafe=True`` skips the check of dependences.

        Before, and after ``sch.bind("i", "threadIdx.x")``::

            for i in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi] * 2.0

            for i in T.thread_binding(4, thread="threadIdx.x"):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi] * 2.0
        """
    def decompose_reduction(self, block: BlockRV | str, loop: LoopRV | str, *, unsafe: bool = False) -> BlockRV:
        """Split the initialisation off a reduction: a block ``C_init`` just before ``loop``, and ``C_update`` in its place.

        Returns the handle of the init block; the old handle then means the update.

        Before → after, for ``sch.decompose_reduction("C", "k")``::

            for i, k in T.grid(8, 8):                for i in range(8):
                with T.block("C"):                       with T.block("C_init"):
                    vi, vk = ...                             C[vi] = 0.0
                    with T.init():                       for k in range(8):
                        C[vi] = 0.0                          with T.block("C_update"):
                    C[vi] = C[vi] + A[vi, vk]                    C[vi] = C[vi] + A[vi, vk]

        Raises ``ScheduleError`` when the block has no init, when a reduction loop is outside ``loop`` (the init would run
        again in the middle of the sum), or when something else under ``loop`` uses the result.
        """
    def fuse(self, *loops: LoopRV | str, preserve_unit_iters: bool = True, name: str | None = None) -> LoopRV:
        """Join perfectly nested loops, outermost first, into one loop over their product.

        The loop is called ``i_j_fused``, or ``name``. Returns it. Raises ``ScheduleError`` when something stands between
        the loops, when the range of one depends on another, or when one is bound, marked or annotated.

        Before, and after ``sch.fuse("i", "j")``::

            for i, j in T.grid(4, 8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * 2.0

            for i_j_fused in range(32):
                with T.block("B"):
                    vi = T.axis.spatial(4, i_j_fused // 8)
                    vj = T.axis.spatial(8, i_j_fused % 8)
                    B[vi, vj] = A[vi, vj] * 2.0
        """
    def loop_partition(self, loop: LoopRV | str, factors: Sequence[Any], preserve_unit_iters: bool = True) -> list[LoopRV]:
        """Cut a loop into consecutive loops of the lengths ``factors``; one may be None and takes what is left.

        Without a None, what is left becomes one more loop. The first piece keeps the names of its blocks, the others get
        ``_1``, ``_2`` …. Returns the loops, in order. Raises ``ScheduleError`` when the lengths exceed the loop's.

        Before, and after ``sch.loop_partition("i", [2, 64])``::

            for i in range(128):
                with T.block("B"):
                    vi = T.axis.spatial(128, i)
                    B[vi] = A[vi] * 2.0

            for i_0 in range(2):
                with T.block("B"):
                    vi = T.axis.spatial(128, i_0)
                    B[vi] = A[vi] * 2.0
            for i_1 in range(2, 66):
                with T.block("B_1"):
                    vi = T.axis.spatial(128, i_1)
                    B[vi] = A[vi] * 2.0
            for i_2 in range(66, 128):
                with T.block("B_2"):
                    vi = T.axis.spatial(128, i_2)
                    B[vi] = A[vi] * 2.0
        """
    def merge(self, *loops: LoopRV | str, unsafe: bool = False) -> LoopRV:
        """Run neighbouring loop nests of equal ranges as one: iteration by iteration, the first's body, then the next's.

        ``loops`` are the innermost loops to merge, one of each nest, in program order. Returns the merged loop. Raises
        ``ScheduleError`` when the nests are not neighbours, are of different depth or range, or when an iteration of a later
        nest needs what a later iteration of an earlier one makes. ``unsafe=True`` skips the last check.

        Before, and after ``sch.merge("i", "j")``::

            for i in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi] * 2.0
            for j in range(4):
                with T.block("C"):
                    vi = T.axis.spatial(4, j)
                    C[vi] = B[vi] + 1.0

            for i_j_m in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i_j_m)
                    B[vi] = A[vi] * 2.0
                with T.block("C"):
                    vi = T.axis.spatial(4, i_j_m)
                    C[vi] = B[vi] + 1.0
        """
    def parallel(self, loop: LoopRV | str, *, unsafe: bool = False) -> None:
        """Run the iterations of a loop on several cores at once.

        Raises ``ScheduleError`` when one iteration writes what another reads or writes (with the two). ``unsafe=True``
        skips that check.

        Before, and after ``sch.parallel("i")``::

            for i in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi] * 2.0

            for i in T.parallel(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi] * 2.0
        """
    def reorder(self, *loops: LoopRV | str, unsafe: bool = False) -> None:
        """Put loops of one nest in the given order, outermost first; loops of the nest not named stay where they are.

        Raises ``ScheduleError`` when the loops are not perfectly nested, when the range of one depends on another that
        would move inside it, or when a dependence would be reversed (with the two instances). ``unsafe=True`` skips the
        last check.

        Before, and after ``sch.reorder("j", "i")``::

            for i, j in T.grid(4, 8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * 2.0

            for j, i in T.grid(8, 4):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * 2.0
        """
    def sample_categorical(self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None) -> Any:
        """Draw one of ``candidates`` with probabilities ``probs``; the trace keeps which (an index) as ``decision``.

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
    def sample_perfect_tile(self, loop: LoopRV | str, n: int, max_innermost_factor: int = 16, decision: Sequence[int] | None = None) -> Any:
        """Draw ``n`` factors whose product is the extent of ``loop``, the last at most ``max_innermost_factor``.

        Every such tiling is equally likely. The factors go to ``split``; the trace keeps them as ``decision``. Raises
        ``ScheduleError`` for an extent that is not a constant, or a decision that does not multiply to it.
        """
    def set_axis_separator(self, block: BlockRV | str, buffer: Any, axis_separators: Sequence[int]) -> None:
        """Split the axes of a buffer into groups that flattening makes one physical axis each.

        ``buffer`` is a name, or ``("read" | "write", number)``. Raises ``ScheduleError`` for separators that do not
        increase within the rank.
        """
    def set_scope(self, block: BlockRV | str, buffer_index: int | str, storage_scope: str) -> None:
        """Put a buffer that ``block`` writes (number or name) into ``storage_scope``.

        Before → after, for ``sch.set_scope("B", 0, "shared")``::

            B = T.alloc_buffer((8,))                 B = T.alloc_buffer((8,), scope="shared")

        Raises ``ScheduleError`` for a parameter buffer, or a scope that does not exist.
        """
    def split(self, loop: LoopRV | str, factors: Sequence[Any] | None = None, preserve_unit_iters: bool = True, disable_predication: bool = False, *, factor: Any = None, nparts: Any = None, names: Sequence[str] | None = None, tail: str = 'guard') -> list[LoopRV]:
        """Take one loop apart into a nest of loops whose extents are ``factors``, outermost first.

        One factor may be None and is inferred; ``factor=32`` stands for ``[None, 32]``, ``nparts=4`` for ``[4, None]``.
        Where the factors do not divide the extent, ``tail`` says what happens: ``"guard"`` makes the extra iterations do
        nothing (a predicate on the blocks below), ``"cut"`` runs the rest in a loop of its own after, ``"exact"`` refuses.
        ``disable_predication`` leaves out the guard: on your word that the factors divide. ``names`` name the new loops
        (default ``i_0``, ``i_1`` …). With ``preserve_unit_iters=False`` loops of one iteration vanish from bindings.

        Returns the new loops, outermost first (with ``"cut"``: of the main part). Raises ``ScheduleError`` for a loop that
        is bound, marked or annotated, and for factors that lose iterations.

        Before, and after ``sch.split("i", [None, 32])``::

            for i in range(100):
                with T.block("B"):
                    vi = T.axis.spatial(100, i)
                    B[vi] = A[vi] * 2.0

            for i_0, i_1 in T.grid(4, 32):
                with T.block("B"):
                    vi = T.axis.spatial(100, i_0 * 32 + i_1)
                    T.where(i_0 * 32 + i_1 < 100)
                    B[vi] = A[vi] * 2.0
        """
    def storage_align(self, block: BlockRV | str, buffer_index: int, axis: int, factor: int, offset: int) -> None:
        """Make the stride of ``axis`` of a written buffer ≡ ``offset`` modulo ``factor`` (elements), by padding.

        With factor 32 and offset 1 the rows of a 32-wide shared tile start in different banks. Raises ``ScheduleError``
        for an axis the buffer does not have, or a factor that is not positive.
        """
    def unannotate(self, block_or_loop: BlockRV | str | LoopRV, ann_key: str) -> None:
        """Take the note ``ann_key`` off a block or loop. Raises ``ScheduleError`` when it is not there.
        """
    def unroll(self, loop: LoopRV | str) -> None:
        """Write the iterations of a loop out one after another when it is lowered. Always legal.

        Before, and after ``sch.unroll("i")``::

            for i in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi] * 2.0

            for i in T.unroll(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi] * 2.0
        """
    def unsafe_set_dtype(self, block: BlockRV | str, buffer_index: int | str, dtype: str) -> None:
        """Store a buffer that ``block`` writes in another type; values are cast when stored and back when loaded.

        Unsafe by name: precision and range change. Raises ``ScheduleError`` for a parameter buffer.
        """
    def vectorize(self, loop: LoopRV | str, *, unsafe: bool = False) -> None:
        """Run the iterations of a loop as the lanes of vector instructions.

        Raises ``ScheduleError`` when one iteration writes what another reads or writes (with the two). ``unsafe=True``
        skips that check.

        Before, and after ``sch.vectorize("i")``::

            for i in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi] * 2.0

            for i in T.vectorized(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi] * 2.0
        """
    def get_block(self, name: str, func_name: str | None = None) -> BlockRV:
        """The block called ``name``, in ``func_name`` (default: the function worked on).

        Raises ``ScheduleError`` naming the blocks there are.
        """
    def get_loops(self, block: BlockRV | str) -> list[LoopRV]:
        """The loops above ``block``, outermost first, up to the block that encloses it.
        """
    def get_child_blocks(self, block_or_loop: BlockRV | str | LoopRV) -> list[BlockRV]:
        """The blocks directly inside a block, or under a loop (not those inside them).
        """
    def get_producers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks of the same scope that write what ``block`` reads.
        """
    def get_consumers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks of the same scope that read what ``block`` writes.
        """
    def get_output_blocks(self, scope_block: BlockRV | str) -> list[BlockRV]:
        """The blocks inside ``scope_block`` that write a buffer which outlives it: not one allocated there.
        """
