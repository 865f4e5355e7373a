"""Looking at the snapshots of a schedule."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..aliases import with_own_memory
from ..checked import checked
from ..cost.footprint import footprint
from ..cost.footprint_table import Footprint, Machine
from ..errors import ScheduleError
from ..function import IRModule, PrimFunc
from ..target import Target
from . import trace as _trace
from .constants import Folded, fold_constants
from .handles import LoopRV
from .history import History, Step
from .state import Snapshots

if TYPE_CHECKING:
    from ..notebook.access_picture import AccessPicture
    from ..notebook.loop_tree import LoopTree
    from ..transform.shared_memory_table import SharedMemoryPlan


class Views(Snapshots):
    """What the current snapshot shows, and earlier ones."""

    # ------------------------------------------------------------ properties

    @property
    def mod(self) -> IRModule:
        """The current module, an immutable ``IRModule``: a later step leaves it as it is.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
        >>> before = sch.mod
        >>> sch.parallel("out.i")
        >>> sch.mod is before, list(sch.mod)
        (False, ['main'])
        """
        return self.state.program

    @property
    def func(self) -> PrimFunc:
        """The current version of the function worked on.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
        >>> [buffer.shape for buffer in sch.func.buffer_map.values()]
        [(8, 16), (8, 16)]
        """
        return with_own_memory(self.state.func)

    @property
    def func_working_on(self) -> str:
        """Name of the function in which names without a function are looked up.

        >>> import tir
        >>> tir.Schedule(tir.library.rows.softmax(8, 16)).func_working_on
        'main'
        """
        return self.state.func_name

    @property
    def target(self) -> Target | None:
        """The target whose limits the steps respect; None where the schedule was given none.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16), target="cuda -arch=sm_80")
        >>> sch.target.kind, tir.Schedule(sch.mod).target
        ('cuda', None)
        """
        return self.state.target

    @property
    def trace(self) -> _trace.Trace:
        """The record of calls that led to the current program: a ``Trace``, which replays, and prints as Python.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
        >>> sch.parallel("out.i")
        >>> print(sch.trace.as_python())
        def apply_trace(sch: tir.Schedule) -> None:
            sch.parallel("out.i")
        """
        return _trace.Trace(self.state.calls())

    @property
    def history(self) -> History:
        """Every step up to here with the module after it; number 0 is the start.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
        >>> sch.parallel("out.i")
        >>> sch.history
        0: start
        1: parallel("out.i")
        >>> "T.parallel(8)" in str(sch.history[0].mod), "T.parallel(8)" in str(sch.history[1].mod)
        (False, True)
        """
        return History(Step(n, self._requests[n]() or "start", self._states[n].program) for n in range(self._at + 1))

    # ------------------------------------------------------------ showing

    def show(self, **options: Any) -> None:
        """Print the program, coloured in a terminal and in a notebook; ``options`` are those of ``IRModule.script``.

        >>> import tir
        >>> tir.Schedule(tir.library.elementwise.scale_add(32)).show()
        # from tir.script import ir as I
        # from tir.script import tir as T
        <BLANKLINE>
        @I.ir_module
        class Module:
            @T.prim_func
            def main(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
                T.func_attr({"global_symbol": "scale_add"})
                # with T.block("root"):
                for i in range(32):
                    with T.block("out"):
                        vi = T.axis.spatial(32, i)
                        T.reads(A[vi])
                        T.writes(B[vi])
                        B[vi] = A[vi] * 3.0 + 1.0
        """
        self.mod.show(**options)

    def script(self, **options: Any) -> str:
        """The current program, as text that parses back to it; ``options`` are those of ``IRModule.script``.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
        >>> tir.structural_equal(tir.script.parse(sch.script()), sch.mod)
        True
        """
        return self.mod.script(**options)

    def __str__(self) -> str:
        return self.mod.script()

    def __repr__(self) -> str:
        steps = "1 step" if self._at == 1 else f"{self._at} steps"
        return f"Schedule of {', '.join(self.mod)} after {steps}"

    def _repr_html_(self) -> str:
        return self.mod._repr_html_()

    @checked
    def footprint(self, machine: Machine | None = None) -> Footprint:
        """How much memory each loop touches now, what holds it, and what limits the run time: a table, with a figure in a
        notebook (docs/footprint.md). ``machine``: sizes and rates, by default those of the schedule's target. Raises
        ``ValueError`` for loops or buffers of unknown size.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.row_sum(8, 16))
        >>> sch.footprint().bottleneck in ("compute", "L1", "L2", "L3", "memory")
        True
        """
        return footprint(self, machine, self.target)

    def fold_constants(self) -> Folded:
        """The program, split in two: what its constant parameters (``T.func_attr({"tir.constant": ["w"]})``) determine, and
        the rest, with new parameters for that. The schedule stays as it is. See :func:`tir.fold_constants`; raises ``TirError``
        as it does.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.elementwise.gelu_chain(8).with_attr("tir.constant", ["A", "S"]))
        >>> [b.name for b in sch.fold_constants().program.buffers()]
        ['H', 'B', 'scaled']
        """
        return fold_constants(self.func)

    def loop_tree(self, *, step: int = -1) -> LoopTree:
        """The loops and blocks with their extents, kinds and regions, and the bytes that each loop touches: a table, in a
        notebook a figure. ``step``: after an earlier step of the history, 0 for the start.

        >>> import tir
        >>> print(tir.Schedule(tir.library.rows.row_sum(2, 16)).loop_tree())
        loop or block  extent  kind   touches  held by    regions
        i                   2           136 B  registers
          j                16            68 B  registers
            total              block                      B[vi] = A[vi, vj]
        """
        from ..notebook.loop_tree import loop_tree

        return loop_tree(self._after(step))

    def access_picture(
        self, buffer: str, loop: LoopRV | str | None = None, *, at: Mapping[str, int] | None = None, step: int = -1
    ) -> AccessPicture:
        """Which elements of ``buffer`` each iteration of ``loop`` touches, and of shared memory the bank conflicts: text,
        in a notebook a figure (docs/pictures.md).

        ``loop``: by default the outermost around the first access. The loops around it stand at their first iteration, or
        where ``at`` says (``{"i": 3}``). ``step`` looks at the program after an earlier step of the history, 0 at the
        first; so ``sch.access_picture("B", "i", step=-2).beside(sch.access_picture("B", "i"))`` shows what the last step
        changed. Raises ``ScheduleError`` for names that are none, ``ValueError`` where sizes or elements are not known
        before the program runs.

        >>> import tir
        >>> print(tir.Schedule(tir.library.elementwise.transpose(4, 8)).access_picture("A", "i"))
        A[4, 8], loop i (4 iterations): 32 of 32 elements; an iteration touches 8 in 1 cache line
        00000000
        11111111
        22222222
        33333333
        shown: [0:4, 0:8]
        """
        from ..notebook.access_picture import access_picture

        return access_picture(self._after(step), buffer, loop, at)

    def shared_memory_plan(self) -> SharedMemoryPlan:
        """The shared memory of each kernel: buffers with their bytes, lifetimes and offsets, a table, in a notebook a
        figure. Raises ``BuildError`` as lowering does.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.elementwise.transpose(8, 16), target="cuda")
        >>> copy = sch.cache_read("out", "A", "shared")
        >>> sch.bind("out.i", "blockIdx.x")
        >>> sch.compute_at(copy, "out.i")
        >>> print(sch.shared_memory_plan())
        kernel  buffer    scope   bytes  lifetime  offset
             0  A_shared  shared     64  0..1           0
        """
        from ..transform.plan_shared_memory import shared_memory_plan

        target = self.target
        return shared_memory_plan(self.mod, target if target is not None and target.kind.startswith("cuda") else "cuda")

    @checked
    def diff(self, step: int = -1, context: int = 3, color: bool | None = None) -> str:
        """What a step changed, statement by statement, as text: a loop that became parallel is one line, however loops print.

        ``context`` is the number of lines around each change, besides the statements that it is in. ``step`` counts from 1, or backwards from the last (-1). Coloured on a terminal, or as ``color`` selects. Empty
        before the first step. Raises ``ScheduleError`` when there is no such step.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.elementwise.scale_add(32))
        >>> sch.parallel("i")
        >>> print(sch.diff(context=0))
        --- before
        +++ parallel("i")
                 …
        -        for i in T.serial(32):
        +        for i in T.parallel(32):
        """
        number = step if step > 0 else self._at + 1 + step
        from ..script.change import program_diff
        from ..script.highlight import Diff

        if self._at == 0 and step == -1:
            return Diff("")
        if not 1 <= number <= self._at:
            taken = f"steps 1 to {self._at} have been taken" if self._at else "no step has been taken"
            raise ScheduleError(f"diff({step}): {taken}")

        before, after = self._states[number - 1].program, self._states[number].program
        lines = program_diff(before, after, self._requests[number](), context).splitlines()
        if sys.stdout.isatty() if color is None else color:
            paint = {"-": "\x1b[31m", "+": "\x1b[32m"}
            lines = [f"{paint[line[0]]}{line}\x1b[0m" if line[:1] in paint else line for line in lines]
        return Diff("\n".join(lines))
