"""The Schedule: a cursor over snapshots. Each step makes a new snapshot; a refused step changes nothing."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import logging
import random
import sys
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from .. import extension
from ..aliases import in_own_memory, same_nodes, with_one_memory, with_own_memory, with_plain_pointers
from ..analysis.index import BlockRef, LoopRef, index_of, node_of
from ..analysis.private_clause import infer_private, without_stale_clauses
from ..equal import structural_equal
from ..errors import InternalError, ScheduleError, attempt, on_refusal
from ..function import IRModule, PrimFunc
from ..names import did_you_mean
from ..neighbours import written_here
from ..poly import Together
from ..stmt import Block, For
from ..target import Target
from ..visit import with_recursion_limit
from . import primitives as _families  # noqa: F401  (registers every primitive)
from . import queries as _queries  # noqa: F401
from .alternatives import alternatives
from .ask import Asker
from .executed import EXECUTED
from .handles import BlockRV, ExprRV, LoopRV, StmtSRef
from .invariants import Delta, Keeps, Kept, check_step
from .offers import places
from .prepared import with_all_accesses_declared, with_one_name, with_own_places
from .primitive import PRIMITIVES, QUERIES, Primitive, check_only, explained, lookup, request_text, run
from .primitive_arguments import copied
from .signatures import public_signature
from .state import State
from .trace import Entry
from .views import Views

_log = logging.getLogger(__name__)
ERROR_LEVELS = ("detail", "fast", "none")


class Schedule(Views):
    """Rewrites a program step by step; every step is proved legal before it is applied.

    ``mod`` is a PrimFunc or an IRModule; the function worked on is ``main``, otherwise the only (or first) one.
    ``seed`` seeds the sampling primitives. ``target`` sets the limits that steps respect. ``verify="run"`` also
    executes the program before and after each step and compares the results. ``error_render_level`` ``"fast"`` omits
    the program from errors, ``"none"`` all but the rule. ``enable_check=False`` skips the legality checks, as
    ``unsafe=True`` on every step would.

    Steps raise ``ScheduleError`` when refused, and then the schedule is unchanged. ``can`` asks first:
    ``sch.can.fuse("i", "j")`` is true if that step would be accepted, otherwise it says why not; nothing changes.

    >>> import tir
    >>> from tir import te
    >>> A = te.placeholder((8, 16), name="A")
    >>> sch = tir.Schedule(te.create_prim_func([A, te.compute((8, 16), lambda i, j: A[i, j] * 2.0, "B")]))
    >>> sch.split("j", [None, 4])
    [LoopRV(j_0), LoopRV(j_1)]
    >>> bool(sch.can.vectorize("j_1")), bool(sch.can.bind("j_1", "threadIdx.q"))
    (True, False)
    >>> sch.vectorize("j_1")
    >>> sch
    Schedule of main after 2 steps
    """

    @property
    def can(self) -> Asker:
        """Every primitive under its name, as a question whether it would be accepted.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.row_sum(4, 8))
        >>> bool(sch.can.parallel("i")), bool(sch.can.parallel("j"))
        (True, False)
        """
        return Asker(self)  # pyright: ignore[reportArgumentType]  (the class of the stub is this one)

    def __init__(
        self,
        mod: PrimFunc | IRModule,
        *,
        seed: int | None = None,
        debug_mask: str | int | None = None,
        error_render_level: str = "detail",
        enable_check: bool = True,
        target: Any = None,
        verify: str | None = None,
    ):
        if error_render_level not in ERROR_LEVELS:
            raise ValueError(f"error_render_level is one of {', '.join(ERROR_LEVELS)}, not {error_render_level!r}")
        if verify not in (None, "run"):
            raise ValueError(f"verify is None or 'run', not {verify!r}")
        if not isinstance(seed, (int, type(None))):
            raise TypeError(f"`seed` of Schedule is an integer or None, not {type(seed).__name__}: {seed!r}")
        module = IRModule.of(mod).map_functions(with_own_places).map_functions(with_plain_pointers)
        module = module.map_functions(with_one_memory).map_functions(with_one_name)
        module = with_all_accesses_declared(module).map_functions(infer_private)
        if not len(module):
            raise ValueError("the module has no functions to schedule")
        func = "main" if "main" in module else next(iter(module))
        state = State(
            module,
            func,
            None if target is None else Target.of(target),
            seed=random.getrandbits(62) if seed is None or seed == -1 else seed,
            is_chosen="main" in module or len(module) == 1,
        )
        super().__init__(state)
        self._level = error_render_level
        self._check = enable_check
        self._also = (EXECUTED,) if verify else ()
        self.debug_mask = debug_mask
        _complete_names()

    def __getitem__(self, name: str) -> BlockRV | LoopRV:
        """The block or the loop called ``name`` (``"i"``, or ``"C.i"`` above block C where several are called so), as a
        handle. Raises ``ScheduleError`` that lists the existing ones, ``TypeError`` for what is no name."""
        if not isinstance(name, str):
            raise TypeError(f'a schedule has blocks and loops by their names, as in sch["C"], not by {name!r}')
        self.state.require_one_function(name)
        if name in self.state.index.blocks:
            return self.state.block_rv(name)
        return self.state.loop_rv(self.state.find_loop(name))

    __iter__ = None  # Python would ask for 0, 1, 2 …

    def _ipython_key_completions_(self) -> list[str]:
        return places(self.state)

    def get(self, handle: LoopRV | BlockRV | ExprRV | str | Any) -> For | Block | int:
        """What a handle or a name currently refers to: the loop, the block, or the integer.

        Raises ``ScheduleError`` for a name or handle of nothing that exists, ``TypeError`` for what is no handle.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
        >>> loop = sch.get("out.j")
        >>> loop.kind, int(loop.extent)
        ('serial', 16)
        >>> sch.get(sch["most"]).name_hint
        'most'
        """
        if isinstance(handle, StmtSRef):
            return handle.stmt
        if isinstance(handle, (str, LoopRV, BlockRV)):
            state = self.state if isinstance(handle, str) else self._in(handle.func)
            return same_nodes(state.func, with_own_memory(state.func), [self._found(state, handle)])[0]
        if isinstance(handle, int) or hasattr(handle, "__index__"):
            return int(handle)
        raise TypeError(f"expected a handle that this schedule gave, got {type(handle).__name__}")

    @staticmethod
    def _found(state: State, handle: LoopRV | BlockRV | str) -> For | Block:
        """The loop or block of a handle or a name, in the program that steps see."""
        if isinstance(handle, str):
            state.require_one_function(handle)
        is_block = isinstance(handle, BlockRV) or (isinstance(handle, str) and handle in state.index.blocks)
        return state.find_block(handle).block if is_block else state.find_loop(handle).node  # type: ignore[arg-type]

    def get_sref(self, handle: LoopRV | BlockRV | str | For | Block) -> StmtSRef:
        """The loop or block that a handle or a name currently refers to, with its parents. It does not follow later
        steps.

        Raises ``ScheduleError`` for one that does not exist.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
        >>> block = sch.get_sref("most")
        >>> block.stmt.name_hint, block.parent.stmt.loop_var.name, block.parent.parent.stmt.loop_var.name
        ('most', 'j', 'i')
        """
        node: Any = handle if isinstance(handle, (For, Block)) else self.get(handle)
        func = handle.func if isinstance(handle, (LoopRV, BlockRV)) else self.state.func_name
        index = index_of(with_own_memory(self._in(func).func))
        chain = [p for p in (*index.loops.values(), *index.blocks.values()) if node_of(p) is node]
        if not chain:
            raise ScheduleError(f"the function has no such {'loop' if isinstance(node, For) else 'block'} now")
        found: StmtSRef | None = None
        for place in reversed([chain[0], *chain[0].ancestors()]):
            if isinstance(place, (LoopRef, BlockRef)):
                found = StmtSRef(node_of(place), found)
        assert found is not None
        return found

    def can_decompose_padding(self, block: BlockRV | str, loop: LoopRV | str) -> bool:
        """Whether ``decompose_padding`` would be accepted; ``sch.can.decompose_padding`` has the reason.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
        >>> sch.can_decompose_padding("out", "out.i")
        False
        """
        return bool(self.can.decompose_padding(block, loop))

    def _in(self, func: str) -> State:
        return dataclasses.replace(self.state, func_name=func) if func in self.mod else self.state

    def remove_rv(self, handle: Any) -> None:
        """Does nothing: handles are names and hold no resources. For compatibility with TVM scripts.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
        >>> loop = sch.get_loops("out")[0]
        >>> sch.remove_rv(loop)
        >>> sch.get(loop).loop_var.name
        'i'
        """

    def get_sblock(self, name: str, func_name: str | None = None) -> BlockRV:
        """``get_block``, under its name in newer versions of TVM.

        >>> import tir
        >>> tir.Schedule(tir.library.rows.softmax(8, 16)).get_sblock("out")
        BlockRV(out)
        """
        return self._apply_step(QUERIES["get_block"], {"name": name, "func_name": func_name})

    # ------------------------------------------------------------ history

    def seed(self, seed: int) -> None:
        """Seed the sampling primitives from now on, with any integer.

        >>> import tir
        >>> first, second = (tir.Schedule(tir.library.rows.softmax(8, 16)) for _ in range(2))
        >>> first.seed(7)
        >>> second.seed(7)
        >>> first.sample_perfect_tile("out.j", n=3) == second.sample_perfect_tile("out.j", n=3)
        True
        """
        self._set_state(dataclasses.replace(self.state, seed=seed))

    def fork_seed(self) -> int:
        """A seed for another schedule, an integer below 2**31, different at each call.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16), seed=1)
        >>> sch.fork_seed() != sch.fork_seed()
        True
        """
        state, generator = self.state.draw()
        self._set_state(state)
        return generator.getrandbits(31)

    def copy(self) -> Schedule:
        """An independent schedule at the same point, in constant time; it draws its own random numbers.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
        >>> other = sch.copy()
        >>> other.compute_inline("power")
        >>> sch, other
        (Schedule of main after 0 steps, Schedule of main after 1 step)
        """
        made = object.__new__(Schedule)
        made.__dict__.update(self.__dict__)
        made._states = list(self._states)
        made._requests = list(self._requests)
        made._set_state(dataclasses.replace(self.state, seed=self.fork_seed()))
        return made

    def explore(self) -> Any:
        """A view on this schedule in a notebook: its loop tree, its history with diffs, what may be done to each loop and
        block, and the code it becomes (docs/notebook.md). What is clicked is a step of this schedule, and what is typed
        in a cell shows. Raises ``ImportError`` without anywidget (``pip install 'tensorir[notebook]'``).

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
        >>> view = sch.explore()  # doctest: +SKIP
        """
        from ..notebook.widget import widget

        return widget(self)  # pyright: ignore[reportArgumentType]  (the class of the stub is this one)

    # ------------------------------------------------------------ steps

    def __getattr__(self, name: str) -> Any:
        step = None if name.startswith("_") else lookup(name)
        if step is None:
            known = {*PRIMITIVES, *QUERIES, *dir(type(self))}
            fails = "" if name.startswith("_") else extension.missing(extension.PRIMITIVES)
            here = written_here(name)
            hint = did_you_mean(name, sorted(known)) if here is None else f"; write {here}"
            raise AttributeError(f"Schedule has no {name!r}{hint}{fails}")
        return _method(step).__get__(self)

    def __dir__(self) -> list[str]:
        extension.load(extension.PRIMITIVES)
        return sorted({*object.__dir__(self), *PRIMITIVES, *QUERIES})

    def _apply_step(self, step: Primitive, given: dict[str, Any]) -> Any:
        """Apply a step (or answer a query) with arguments by name; every step goes through here."""
        state = self.state
        if step.apply is None:
            return self._query(step, state, given)
        if not self._check and "unsafe" in step.signature.parameters:
            given = {**given, "unsafe": True}
        new, result, plan = self._attempt(step, state, given)
        given = copied(given)
        recorded = {**given, **getattr(plan, "recorded", {})}
        new = new.with_call(Entry(step.name, recorded, copied(result)))
        del self._states[self._at + 1 :], self._requests[self._at + 1 :]
        self._states.append(new)
        self._requests.append(functools.partial(request_text, step, given))
        self._at += 1
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug("step %d: %s", self._at, self._requests[self._at]())
        return result

    def _query(self, step: Primitive, state: State, given: dict[str, Any]) -> Any:
        with on_refusal(self._make_plainer):
            result = check_only(step, state, given)
        self._set_state(state.with_call(Entry(step.name, copied(given), copied(result))))
        return result

    @with_recursion_limit
    def _attempt(self, step: Primitive, state: State, given: Mapping[str, Any]) -> tuple[State, Any, Any]:
        """The snapshot after a step on ``state``, with the result and the plan. Raises ``ScheduleError`` if the step is
        refused or breaks an invariant."""
        questions = Together()

        def complete(error: ScheduleError) -> None:
            if not isinstance(error, InternalError):  # a fault: which other calls have it says nothing
                itself = weakref.proxy(error)  # which keeps what finds it
                find = functools.partial(alternatives, itself, step, state, given, self._outcome)
                error.find_legal(questions(find))
            self._make_plainer(error)

        with on_refusal(complete), questions:
            new, result, plan = run(step, state, given)
            if new.mod is not state.mod:
                keeps = step.kept_by(plan) | (Keeps.MEANING if given.get("unsafe") else Keeps.NOTHING)
                new = self._verify_step(step, keeps, given, state, new)
        return new, result, plan

    def _outcome(self, step: Primitive, state: State, given: Mapping[str, Any]) -> State | ScheduleError:
        """The snapshot after a legal step that has a result or changes the program; otherwise why it is not taken."""
        outcome = attempt(lambda: self._attempt(step, state, given))
        if isinstance(outcome, ScheduleError):
            return outcome
        after, result, _ = outcome
        nothing = result is None or (isinstance(result, list) and not result)
        idle = nothing and structural_equal(after.mod, state.mod)
        return ScheduleError("the program would stay as it is") if idle else after

    def _make_plainer(self, error: ScheduleError) -> None:
        """Say as much as the schedule's ``error_render_level`` shows."""
        in_own_memory(error)
        if self._level != "detail":
            error.nodes = []
        if self._level == "none":
            error.witness, error.legal = [], ""

    def _verify_step(
        self, step: Primitive, keeps: Kept, given: Mapping[str, Any], before: State, after: State
    ) -> State:
        """The snapshot after a step that preserves what it ``keeps``, with the ``private`` clauses that its loops need.
        Raises ``ScheduleError`` where an invariant does not hold of a function that the step changed."""
        settled, modules = after, lambda: (before.program, after.program)
        for name, made in after.mod.functions.items():
            old = before.mod.functions.get(name)
            new = without_stale_clauses(made) if index_of(made).with_clause else made
            if old is new:
                continue
            # what iterations had for themselves, by a clause that is stale, they may share now
            kept = keeps if new is made else keeps - Keeps.ACCESSES
            delta = Delta(old, new, kept, primitive=step.name, name=name, modules=modules, target=after.target)
            with explained(step, given, after):
                check_step(delta, self._also)
                new = delta.with_needed_clauses()
            if new is not made:
                settled = settled.replaced(mod=settled.mod.with_function(name, new))
        return settled


@functools.cache
def _complete_names() -> None:
    """In an IPython session, from the first schedule on, Tab completes names inside of strings and after ``sch.can.``."""
    if "IPython" in sys.modules:
        from ..notebook import join_session

        join_session()


def _method(step: Primitive) -> Callable[..., Any]:
    """The Schedule method of a primitive: its signature and docstring are the check's."""

    def method(self: Schedule, *args: Any, **kwargs: Any) -> Any:
        return self._apply_step(step, step.bind(args, kwargs))

    method.__name__ = step.name
    method.__qualname__ = f"Schedule.{step.name}"
    method.__doc__ = step.doc
    me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    public = public_signature(step)
    method.__signature__ = public.replace(parameters=[me, *public.parameters.values()])  # type: ignore
    return method


for _step in (*PRIMITIVES.values(), *QUERIES.values()):
    setattr(Schedule, _step.name, _method(_step))
