"""Stages: what a user says of the loops of one operation, recorded; nothing happens before :mod:`tir.te.replay`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..arith import Analyzer
from ..buffer import Range
from ..errors import ScheduleError
from ..expr import Expr, IntImm, Var, as_bool, const
from ..node import Span
from .hybrid import HybridOp
from .recurrence import ScanOp
from .store_predicate import StorePredicate
from .tensor import Axis, Operation, PlaceholderOp, Tensor
from .user_lines import user_place

if TYPE_CHECKING:
    from .group import Group
    from .schedule import Schedule


@dataclass(frozen=True)
class Call:
    """A call of the user's, as text, and its line."""

    text: str
    place: Span | None

    def __str__(self) -> str:
        return self.text if self.place is None else f"{self.text} at line {self.place.line}"


def refusal(call: Call, rule: str, legal: str = "", witness: Sequence[str] = ()) -> ScheduleError:
    """The error for a call that asks for what is not possible; names the user's line."""
    where = [] if call.place is None else [f"{call.place.filename}:{call.place.line}"]
    return ScheduleError(rule, request=call.text, witness=[*where, *witness], legal=legal)


# ---------------------------------------------------------------- what is recorded


@dataclass(frozen=True, eq=False)
class Split:
    """``parent`` becomes ``outer`` and ``inner``; one of ``factor`` and ``nparts`` is given."""

    parent: Axis
    outer: Axis
    inner: Axis
    factor: int | Expr | None
    nparts: int | Expr | None
    call: Call

    @property
    def parents(self) -> tuple[Axis, ...]:
        return (self.parent,)

    @property
    def children(self) -> tuple[Axis, ...]:
        return (self.outer, self.inner)


@dataclass(frozen=True, eq=False)
class Fuse:
    """``parents``, outermost first, become ``fused``."""

    parents: tuple[Axis, ...]
    fused: Axis
    call: Call

    @property
    def children(self) -> tuple[Axis, ...]:
        return (self.fused,)


class Axes(list[Axis]):
    """Axes in order. One is among them by identity: ``i == j`` is an expression."""

    def __contains__(self, axis: object) -> bool:
        return any(a is axis for a in self)


@dataclass(frozen=True, eq=False)
class Attach:
    """Where a stage runs: at ``axis`` of ``stage``."""

    stage: Stage
    axis: Axis
    call: Call


_BESIDE = ("pragma", "prefetch")  # marks of a loop beside what kind of loop it is


@dataclass(frozen=True)
class Mark:
    """What a loop is: ``kind`` is that of the call (bind, vectorize, parallel, unroll, tensorize, pragma, prefetch …), ``value``
    its argument."""

    kind: str
    value: Any
    call: Call


@dataclass
class Stage:
    """The schedule of one operation: ``s[C]``. Calls are recorded; :func:`tir.lower` carries them out and checks them.

    ``op`` is the operation as it is now (``cache_read``, ``cache_write`` and ``rfactor`` replace operations), and
    ``leaf_iter_vars`` are the axes that are loops, outermost first.
    """

    schedule: Schedule
    op: Operation
    name: str
    leaf_iter_vars: list[Axis] = field(default_factory=list)
    relations: list[Split | Fuse] = field(default_factory=list)
    marks: dict[Axis, list[Mark]] = field(default_factory=dict)
    attach: Attach | None = None
    inlined: Call | None = None
    scope: str = ""
    notes: list[Mark] = field(default_factory=list)
    scope_call: Call | None = None
    reordered: Call | None = None
    environment: Mark | None = None
    group: Group | None = None

    def __post_init__(self) -> None:
        self.leaf_iter_vars = Axes(self.leaf_iter_vars or [*self.op.axis, *self.op.reduce_axis])

    def __repr__(self) -> str:
        return f"Stage({self.name}: {', '.join(axis_name(a) for a in self.leaf_iter_vars)})"

    # ------------------------------------------------------------ axes

    def split(self, parent: Any, factor: Any = None, nparts: Any = None, disable_predication: bool = False) -> Any:
        """Split an axis into an outer and an inner one: of ``factor`` iterations inside, or ``nparts`` outside.

        Iterations past the end of the axis are guarded. Returns (outer, inner). Raises ``ScheduleError`` for an axis that
        is no loop of this stage, or is marked already.

        >>> from tir import te
        >>> A = te.placeholder((8,), name="A")
        >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
        >>> s = te.create_schedule(B.op)
        >>> s[B].split(B.op.axis[0], factor=4)
        (i_outer, i_inner)
        """
        call = self._call("split", parent, factor=factor, nparts=nparts)
        axis = self._free_leaf(parent, call)
        if (factor is None) == (nparts is None):
            raise refusal(call, "a split has one of factor and nparts", "factor=32, or nparts=4")
        sizes = [_size(v, call) for v in (factor, nparts)]
        outer, inner = (_derived(f"{axis_name(axis)}_{part}", axis) for part in ("outer", "inner"))
        self._replace([axis], [outer, inner])
        self.relations.append(Split(axis, outer, inner, sizes[0], sizes[1], call))
        return outer, inner

    def fuse(self, *args: Any) -> Axis:
        """Fuse axes that follow each other, outermost first. Returns the fused axis: of no axes, those of a 0-d tensor, one of
        extent 1.

        Raises ``ScheduleError`` for axes that are no loops of this stage, or do not follow each other, and for a reduction
        axis that may be empty beside one that is none.
        """
        call = self._call("fuse", *args)
        given = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
        if not given and not self.op.axis:
            unit = Axis(Range(const(0), const(1)), Var("fused"), "spatial")
            self.leaf_iter_vars.insert(0, unit)
            self.relations.append(Fuse((), unit, call))
            return unit
        if not given:
            raise refusal(call, "there is nothing to fuse", "s[C].fuse(i, j)")
        parts = [self._free_leaf(a, call) for a in given]
        at = [self._position(a) for a in parts]
        if at != list(range(at[0], at[0] + len(at))):
            raise refusal(
                call,
                f"axes that are fused follow each other, outermost first: the loops are {self._leaves()}",
                f"reorder first: s[{self.name}].reorder({', '.join(map(axis_name, parts))})",
            )
        if len(parts) == 1:
            return parts[0]
        self._check_start(parts, call)
        fused = _derived("_".join([*map(axis_name, parts), "fused"]), parts[0])
        self._replace(parts, [fused])
        self.relations.append(Fuse(tuple(parts), fused, call))
        return fused

    def reorder(self, *args: Any) -> None:
        """Put the axes into this order; the other axes keep their places.

        Raises ``ScheduleError`` for an axis that is no loop of this stage, or is named twice.
        """
        call = self._call("reorder", *args)
        axes = [self._leaf(a, call) for a in args]
        places = sorted(self._position(a) for a in axes)
        if len(set(places)) < len(places):
            raise refusal(call, "an axis is named twice")
        for place, axis in zip(places, axes):
            self.leaf_iter_vars[place] = axis
        self.reordered = call

    def tile(self, x_parent: Any, y_parent: Any, x_factor: Any, y_factor: Any) -> tuple[Axis, Axis, Axis, Axis]:
        """Split two axes and put both outer ones outside. Returns (x_outer, y_outer, x_inner, y_inner). Raises
        ``ScheduleError`` as ``split`` does, before either is split."""
        call = self._call("tile", x_parent, y_parent, x_factor, y_factor)
        x, y = (self._free_leaf(axis, call) for axis in (x_parent, y_parent))
        if x is y:
            raise refusal(call, f"`{axis_name(x)}` is given twice", f"two of the loops {self._leaves()}")
        if None in [_size(factor, call) for factor in (x_factor, y_factor)]:
            raise refusal(call, "a tile has two factors")
        x_outer, x_inner = self.split(x_parent, factor=x_factor)
        y_outer, y_inner = self.split(y_parent, factor=y_factor)
        self.reorder(x_outer, y_outer, x_inner, y_inner)
        return x_outer, y_outer, x_inner, y_inner

    # ------------------------------------------------------------ kinds of loops

    def bind(self, ivar: Any, thread_ivar: Any) -> None:
        """Bind an axis to a thread axis of ``te.thread_axis``."""
        call = self._call("bind", ivar, thread_ivar)
        self._mark(ivar, "bind", _thread(thread_ivar, call), call)

    def vectorize(self, var: Any) -> None:
        """Run the iterations of an axis as one vector instruction."""
        self._mark(var, "vectorize", None, self._call("vectorize", var))

    def parallel(self, var: Any) -> None:
        """Run the iterations of an axis on all cores."""
        self._mark(var, "parallel", None, self._call("parallel", var))

    def unroll(self, var: Any) -> None:
        """Unroll an axis."""
        self._mark(var, "unroll", None, self._call("unroll", var))

    def pragma(self, var: Any, pragma_type: str, pragma_value: Any = None) -> None:
        """Annotate an axis with ``pragma_<pragma_type>``."""
        call = self._call("pragma", var, pragma_type, pragma_value)
        if not isinstance(pragma_type, str):
            raise refusal(call, f"the name of a pragma is a string, not {pragma_type!r}", '"auto_unroll_max_step"')
        self._mark(var, "pragma", (pragma_type, 1 if pragma_value is None else pragma_value), call)

    def tensorize(self, var: Any, tensor_intrin: Any) -> None:
        """Replace the loops from an axis inwards by a tensor intrinsic."""
        self._mark(var, "tensorize", tensor_intrin, self._call("tensorize", var, tensor_intrin))

    # ------------------------------------------------------------ where the stage runs, and its memory

    def compute_at(self, parent: Any, scope: Any) -> None:
        """Run this stage inside ``scope``, an axis of the stage ``parent``: as much of it as is needed there.

        Raises ``ScheduleError`` for an output, and for an axis that ``parent`` does not have.
        """
        call = self._call("compute_at", parent, scope)
        if not isinstance(parent, Stage):
            raise refusal(call, f"{parent!r} is no stage", "s[B].compute_at(s[C], axis)")
        self._movable(call)
        if parent is self:
            raise refusal(call, "a stage cannot run inside itself")
        if isinstance(parent.op, HybridOp):
            raise refusal(
                call,
                f"`{parent.name}` is loops and stores: no block there reads `{self.name}`, which would be computed for it",
                f"s[{self.name}].compute_root()",
            )
        axis = parent._known(scope, call)
        self.attach, self.inlined = Attach(parent, axis, call), None

    def compute_inline(self) -> None:
        """Put the expression of this stage where its tensor is read. Raises ``ScheduleError`` for an output or a reduction."""
        call = self._call("compute_inline")
        self._movable(call)
        if self.op.reduce_axis:
            raise refusal(call, f"`{self.name}` is a reduction, which is no expression of its readers")
        self.attach, self.inlined = None, call

    def compute_root(self) -> None:
        """Run this stage before its consumers, outside of their loops; the default."""
        self.attach = self.inlined = None

    def set_scope(self, scope: str) -> None:
        """Keep the tensor in a memory: ``"global"``, ``"shared"``, ``"local"`` …"""
        call = self._call("set_scope", scope)
        require_scope(call, scope)
        self._movable(call)
        self.scope, self.scope_call = scope, call

    def storage_align(self, axis: Any, factor: int, offset: int) -> None:
        """Pad rows of the tensor so that the stride of ``axis`` is ``offset`` elements past a multiple of ``factor``."""
        call = self._call("storage_align", axis, factor, offset)
        self._require_block(call)
        dims = [n for n, a in enumerate(self.op.axis) if a is axis]
        if not dims:
            raise refusal(
                call, f"`{axis_name(axis)}` is no axis of the tensor `{self.name}`", f"s[{self.name}].op.axis[0]"
            )
        self.notes.append(Mark("storage_align", (dims[0], factor, offset), call))

    def double_buffer(self) -> None:
        """Fill the tensor of the next iteration while this one is used."""
        call = self._call("double_buffer")
        self._require_block(call)
        self.notes.append(Mark("double_buffer", None, call))

    def set_store_predicate(self, predicate: Any) -> None:
        """Store only where ``predicate``, a condition on thread axes and on axes of this stage, holds.

        The stores that it leaves out are repetitions: threads that reduce together, and threads of the kernel that no axis
        of the stage is bound to, all have the same value, of which one is stored. Raises ``ScheduleError`` for what is no
        condition, and, when the schedule is carried out, for a predicate that leaves an element without a store, with
        the iteration in which that happens.
        """
        call = self._call("set_store_predicate", predicate)
        self._require_block(call)
        if not isinstance(predicate, (Expr, bool)):
            raise refusal(
                call, f"{predicate!r} is no condition", "thread_x.var.equal(0), for an axis of te.thread_axis"
            )
        self.notes.append(Mark("predicate", StorePredicate(as_bool(predicate)), call))

    def prefetch(self, tensor: Tensor, var: Any, offset: int = 1) -> None:
        """Request, at each iteration of ``var``, the cache lines of ``tensor`` that are read ``offset`` iterations later.

        Raises ``ScheduleError`` for an axis that is no loop of this stage, and, when the schedule is carried out, for a
        tensor that is not read there, or that is the same in each iteration.
        """
        call = self._call("prefetch", tensor, var, offset)
        if not isinstance(tensor, Tensor):
            raise refusal(call, f"{tensor!r} is no tensor", f"s[{self.name}].prefetch(A, axis, 1)")
        self._mark(var, "prefetch", (tensor, offset), call)

    def env_threads(self, threads: Any) -> None:
        """Run all of a scan in these thread axes: its steps, whose axes are bound to them, in one kernel with time inside.

        Raises ``ScheduleError`` for a stage that is no scan and for what is no thread axis, and, when the schedule is
        carried out, for a step that has no such axis, or reads what another thread makes.
        """
        call = self._call("env_threads", threads)
        axes = tuple(threads) if isinstance(threads, (list, tuple)) else (threads,)
        if not isinstance(self.op, ScanOp):
            raise refusal(call, f"`{self.name}` is no scan", "bind the axes of the stage")
        self.environment = Mark("env_threads", tuple(_thread(a, call) for a in axes), call)

    # ------------------------------------------------------------ records

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Call:
        parts = [_shown(a) for a in args] + [f"{k}={_shown(v)}" for k, v in kwargs.items() if v is not None]
        return Call(f"s[{self.name}].{name}({', '.join(parts)})", user_place())

    def _mark(self, axis: Any, kind: str, value: Any, call: Call) -> None:
        leaf = self._leaf(axis, call)
        marks = self.marks.setdefault(leaf, [])
        if kind not in _BESIDE:
            clash = next((m for m in marks if m.kind not in (*_BESIDE, kind)), None)
            if clash is not None:
                raise refusal(call, f"`{axis_name(leaf)}` is marked already: {clash.call}")
            marks[:] = [m for m in marks if m.kind != kind]
        marks.append(Mark(kind, value, call))

    def _replace(self, old: Sequence[Axis], new: Sequence[Axis]) -> None:
        at = self._position(old[0])
        self.leaf_iter_vars[at : at + len(old)] = new

    def _check_start(self, parts: Sequence[Axis], call: Call) -> None:
        """Raise where a fused loop would have no place before it for the initial values of an empty reduction."""
        if len({a.iter_type == "reduce" for a in parts}) == 1:
            return
        for axis in self.op.reduce_axis:
            if axis.dom is not None and not Analyzer().can_prove(axis.dom.extent >= 1):
                raise refusal(
                    call,
                    f"reduction axis `{axis_name(axis)}` is empty where `{axis.dom.extent!r}` is 0, and `{self.name}` would "
                    "have no value there: its initial values are stored before the loops of the reduction",
                    "fuse axes of the result with each other, and axes of the reduction",
                )

    def _position(self, axis: Axis) -> int:
        return next(n for n, a in enumerate(self.leaf_iter_vars) if a is axis)

    def _leaves(self) -> str:
        return ", ".join(f"`{axis_name(a)}`" for a in self.leaf_iter_vars) or "none"

    def _movable(self, call: Call) -> None:
        if self.schedule.is_output(self.op):
            raise refusal(call, f"`{self.name}` is an output: its loops are not in those of another stage")
        if isinstance(self.op, PlaceholderOp):
            raise refusal(call, f"`{self.name}` is an input, which is not computed", "s.cache_read makes a copy of it")
        self._require_block(call)

    def _require_block(self, call: Call) -> None:
        if isinstance(self.op, HybridOp):
            raise refusal(
                call,
                f"`{self.name}` is loops and stores that stay where they are: it is no block, to be moved or kept elsewhere",
                f"steps of its loops, {self._leaves()}; memory is chosen by allocate(shape, dtype, scope)",
            )

    # ------------------------------------------------------------ which axis is meant

    def _free_leaf(self, axis: Any, call: Call) -> Axis:
        """A loop of this stage that is not marked yet."""
        leaf = self._leaf(axis, call)
        for mark in self.marks.get(leaf, ()):
            raise refusal(call, f"`{axis_name(leaf)}` is marked already: {mark.call}", "split and fuse before that")
        return leaf

    def _leaf(self, axis: Any, call: Call) -> Axis:
        """The loop that ``axis`` is. Raises ``ScheduleError`` that says what became of it, or whose it is."""
        known = self._known(axis, call)
        if any(known is a for a in self.leaf_iter_vars):
            return known
        by = next(r for r in self.relations if any(p is known for p in r.parents))
        became = " and ".join(f"`{axis_name(c)}`" for c in by.children)
        raise refusal(call, f"`{axis_name(known)}` is {became} since {by.call}", f"the loops are {self._leaves()}")

    def _known(self, axis: Any, call: Call) -> Axis:
        """``axis``, if this stage has or had it."""
        if isinstance(axis, Var):
            axis = next((a for a in self._all_axes() if a.var is axis), axis)
        if any(a is axis for a in self._all_axes()):
            return axis
        if not isinstance(axis, Axis):
            raise refusal(call, f"{axis!r} is no axis", f"the loops of `{self.name}` are {self._leaves()}")
        owner = self.schedule.owner_of(axis)
        whose = (
            f"`{axis_name(axis)}` is an axis of `{owner}`, not of" if owner else f"`{axis_name(axis)}` is no axis of"
        )
        legal = f"the loops of `{self.name}` are {self._leaves()}"
        raise refusal(call, f"{whose} `{self.name}`", legal)

    def _all_axes(self) -> Iterator[Axis]:
        yield from self.op.axis
        yield from self.op.reduce_axis
        for relation in self.relations:
            yield from relation.children

    def has_axis(self, axis: Any) -> bool:
        """Whether ``axis`` is, or was, one of this stage."""
        return any(a is axis for a in self._all_axes())

    # ------------------------------------------------------------ what the replay asks

    def leaves_of(self, axis: Axis) -> list[Axis]:
        """The loops that ``axis`` became, outermost first."""
        reached = {axis}
        for relation in self.relations:
            if any(p in reached for p in relation.parents):
                reached.update(relation.children)
        return [a for a in self.leaf_iter_vars if a in reached]

    def rank(self, axis: Axis) -> int:
        """The place of the outermost loop that ``axis`` became."""
        return self._position(self.leaves_of(axis)[0])


def require_scope(call: Call, scope: Any) -> None:
    if not isinstance(scope, str):
        raise refusal(call, f"a storage scope is a string, not {scope!r}", '"global", "shared", "local"')


def _thread(axis: Any, call: Call) -> Axis:
    """``axis``, if it is one of ``te.thread_axis``."""
    if not isinstance(axis, Axis) or not axis.thread_tag:
        raise refusal(call, f"{axis!r} is no thread axis", 'te.thread_axis("threadIdx.x")')
    return axis


def axis_name(axis: Any) -> str:
    """The name of an axis, or the text of what was given in its place."""
    return axis.var.name if isinstance(axis, Axis) else repr(axis)


def _derived(name: str, parent: Axis) -> Axis:
    return Axis(None, Var(name, parent.var.dtype), parent.iter_type)


def _shown(value: Any) -> str:
    if isinstance(value, Axis):
        return axis_name(value)
    if isinstance(value, Stage):
        return f"s[{value.name}]"
    if isinstance(value, Tensor):
        return value.name
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_shown, value))}]"
    return repr(value)


def _size(value: Any, call: Call) -> int | Expr | None:
    if value is None:
        return None
    if isinstance(value, IntImm):
        value = value.value
    if isinstance(value, Expr):
        return value
    try:
        number = None if isinstance(value, bool) else value.__index__()
    except (AttributeError, TypeError):
        number = None
    if number is None:
        raise refusal(call, f"a factor is an integer, not {value!r}")
    if number < 1:
        raise refusal(call, f"a factor is at least 1, not {number}")
    return number
