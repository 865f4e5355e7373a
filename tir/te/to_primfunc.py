"""From a graph of operations to a function in block form: a block an operation."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..analysis.block_regions import with_regions
from ..arith import Analyzer, simplify, simplify_stmt
from ..buffer import Buffer, IterVar, MatchBufferRegion, Range, decl_buffer
from ..dtype import HANDLE, VOID
from ..equal import structural_equal
from ..expr import TRUE, BufferLoad, Expr, Reduce, Var, const, is_const
from ..function import PrimFunc
from ..names import claimed, identifier, unique_name
from ..node import frozendict
from ..stmt import SERIAL, Block, BlockRealize, BufferStore, For, IfThenElse, Stmt, in_lets, root_block, seq
from ..visit import rewrite, substitute, walk, with_recursion_limit
from .computation import ComputeOp, axes_of, free_variables
from .extern import ExternOp, own_variables
from .hybrid import HybridOp
from .recurrence import ScanOp
from .split_reductions import reduction_groups
from .symbolic_sizes import unified
from .tensor import Operation, PlaceholderOp, Tensor, TensorLoad, TensorSlice, loads_in, operations_of
from .user_lines import error


@dataclass(frozen=True)
class LoweredGraph:
    """A function, and where the parts of the graph went: ``buffers`` of tensors, names of the ``blocks`` of operations."""

    func: PrimFunc
    buffers: dict[Tensor, Buffer]
    blocks: dict[Operation, list[str]]


def function_of(made: Any, name: str = "main") -> PrimFunc:
    """The function of a tensor, or of several: its parameters are the inputs, in order of use, and the results.

    A function is given back as it is. Raises ``TensorExpressionError`` for anything else.

    >>> from tir import ops, te
    >>> A, B = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    >>> [b.name for b in te.function_of(ops.add(A, B)).buffers()]
    ['A', 'B', 'add']
    """
    if isinstance(made, PrimFunc):
        return made
    outputs = list(made) if isinstance(made, (list, tuple)) else [made]
    if not outputs or not all(isinstance(t, Tensor) for t in outputs):
        raise error(f"a tensor, a list of tensors or a function is needed, not {made!r}")
    inputs = [op.output(0) for op in operations_of(outputs) if isinstance(op, PlaceholderOp)]
    return create_prim_func([*inputs, *outputs], name)


def create_prim_func(args: Any, name: str = "main") -> PrimFunc:
    """The function that computes ``args``: inputs and outputs in the order of its parameters; scalars (``te.var``) too.

    Each operation that they need becomes a block, named as the operation; tensors that are no arguments are allocated.
    Lists of tensors may be nested. Raises ``TensorExpressionError`` for an input that is missing among ``args``, for a
    scalar that is no argument and no size of one, and for what is no tensor.

    >>> from tir import te
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    >>> te.create_prim_func([A, B]).show()
    # from tir.script import tir as T
    <BLANKLINE>
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        for i in range(8):
            with T.block("B"):
                v_i = T.axis.spatial(8, i)
                T.reads(A[v_i])
                T.writes(B[v_i])
                B[v_i] = A[v_i] + 1.0
    <BLANKLINE>
    """
    return lower_graph(args, name).func


@with_recursion_limit
def lower_graph(args: Any, name: str = "main", binds: Mapping[Tensor, Buffer] | None = None) -> LoweredGraph:
    """As :func:`create_prim_func`, with what became of the graph; tensors that ``binds`` has are in its buffers."""
    arguments = _arguments(args)
    operations = operations_of([a for a in arguments if isinstance(a, Tensor)])
    _check_inputs(arguments, operations)
    _check_scalars(arguments, operations)
    lowering = Lowering(arguments, operations, binds)
    params: list[Var] = []
    buffer_map: dict[Var, Buffer] = {}
    for argument in arguments:
        if isinstance(argument, Tensor):
            buffer = lowering.buffers[argument]
            params.append(Var(f"{buffer.name}_handle", HANDLE))
            buffer_map[params[-1]] = buffer
        else:
            params.append(argument)
    sizes, checks = unified(operations, set(params))
    body = seq([*checks, *(statement_of(op, lowering) for op in operations if op not in lowering.inside)])
    given = set(buffer_map.values())
    local = tuple(b for b in dict.fromkeys([*lowering.buffers.values(), *lowering.memory]) if b not in given)
    attrs = frozendict({"global_symbol": name, "tir.noalias": True})
    func = PrimFunc(tuple(params), root_block(body, local), VOID, frozendict(buffer_map), attrs)
    return _with_values(LoweredGraph(func, lowering.buffers, lowering.blocks), sizes)


def _with_values(graph: LoweredGraph, values: Mapping[Var, Expr]) -> LoweredGraph:
    """The function with ``values`` in the place of variables, which are none of its parameters."""
    if not values:
        return graph
    buffers = {b: substitute(b, values) for b in graph.buffers.values()}
    func = graph.func.replace(
        body=substitute(graph.func.body, values, buffers),
        buffer_map=frozendict({p: buffers[b] for p, b in graph.func.buffer_map.items()}),
    )
    return LoweredGraph(func, {t: buffers[b] for t, b in graph.buffers.items()}, graph.blocks)


def bound_buffer(tensor: Tensor, binds: Mapping[Tensor, Buffer]) -> Buffer | None:
    """The buffer that ``binds`` has for a tensor. Raises ``TensorExpressionError`` for one of another type or dimension."""
    found = binds.get(tensor)
    if found is not None and (found.dtype is not tensor.dtype or found.ndim != tensor.ndim):
        raise error(
            f"the buffer bound to `{tensor.name}` is {found.dtype} of {found.ndim} dimensions; the tensor is "
            f"{tensor.dtype} of {tensor.ndim}"
        )
    return found


# ---------------------------------------------------------------- arguments


def _arguments(args: Any) -> list[Any]:
    """Tensors and scalars of ``args``, flattened."""
    found: list[Any] = []
    for item in args if isinstance(args, (list, tuple)) else [args]:
        if isinstance(item, (list, tuple)):
            found += _arguments(item)
        elif isinstance(item, Tensor) or (isinstance(item, Var) and not item.dtype.is_handle):
            if any(item is other for other in found):
                raise error(f"`{item.name}` is twice among the arguments")
            found.append(item)
        else:
            what = "a slice of a tensor" if isinstance(item, TensorSlice) else f"{item!r}"
            raise error(f"an argument of a function is a tensor or a te.var, not {what}")
    if not any(isinstance(a, Tensor) for a in found):
        raise error("the function has no tensors among its arguments", "te.create_prim_func([A, B])")
    return found


def _check_inputs(arguments: Sequence[Any], operations: Sequence[Operation]) -> None:
    given = {a for a in arguments if isinstance(a, Tensor)}
    given |= {t for op in operations if isinstance(op, ScanOp) for t in op.states}
    missing = [op for op in operations if isinstance(op, PlaceholderOp) and op.output(0) not in given]
    if missing:
        first = missing[0].output(0)
        users = [op.name for op in operations if first in op.input_tensors]
        names = [a.name for a in arguments]
        raise error(
            f"input `{first.name}`, which `{users[0]}` reads, is not among the arguments ({', '.join(names)})",
            f"te.create_prim_func([{', '.join([*(m.name for m in missing), *names])}])",
        )


def _check_scalars(arguments: Sequence[Any], operations: Sequence[Operation]) -> None:
    """Every scalar is an argument, or the extent of one."""
    known = {a for a in arguments if isinstance(a, Var)}
    known |= {s for a in arguments if isinstance(a, Tensor) for s in a.shape if isinstance(s, Var)}
    for op in operations:
        unknown = next((v for v in op_variables(op) if v not in known), None)
        if unknown is not None:
            raise error(
                f"`{op.name}` uses the variable `{unknown.name}`, which is neither an argument of the function nor an "
                "extent of one",
                f"te.create_prim_func([{unknown.name}, …])",
                op.place,
            )


@functools.singledispatch
def op_variables(op: Operation) -> Iterable[Var]:
    """The scalars that an operation uses: not its own axes."""
    return [v for t in op.outputs for s in t.shape for v in free_variables(s)]


@op_variables.register
def _(op: ComputeOp) -> Iterable[Var]:
    own = {a.var for a in op.axis}
    parts = [*op.body, *(a.dom for a in op.axis)]
    return [v for part in parts for v in free_variables(part) if v not in own]


@op_variables.register
def _(op: ExternOp) -> Iterable[Var]:
    return [*op.variables(), *(v for t in op.outputs for s in t.shape for v in free_variables(s))]


# ---------------------------------------------------------------- operations


@functools.singledispatch
def statement_of(op: Operation, lowering: Lowering) -> Stmt:
    """The loops and blocks of an operation."""
    raise NotImplementedError(type(op).__name__)


class Lowering:
    """What the statements of all operations share: buffers of tensors, and the names of blocks.

    ``inside`` are operations without statements of their own: inputs, and the parts of scans. ``time`` has the loop that
    a step of a scan stands in.
    """

    def __init__(
        self, arguments: Sequence[Any], operations: Sequence[Operation], binds: Mapping[Tensor, Buffer] | None = None
    ):
        self._binds = binds or {}
        self.blocks: dict[Operation, list[str]] = {}
        self.memory: list[Buffer] = []  # of operations' own
        self.time: dict[Operation, tuple[Var, Range]] = {}
        self.inside: set[Operation] = {op for op in operations if isinstance(op, PlaceholderOp)}
        self._block_names: set[str] = {"root"}
        self._names = {a.name for a in arguments if isinstance(a, Var)}
        tensors = [a for a in arguments if isinstance(a, Tensor)]
        stored_in = self._states(tensors, operations)
        self.buffers: dict[Tensor, Buffer] = {}
        needed = set(tensors)
        for op in reversed(operations):
            if needed.isdisjoint(op.outputs):  # all its readers are left out; its stage remains
                needed.update(op.outputs)
            needed.update(_read_for(op, needed))
        made = (t for op in operations for t in op.outputs if t in needed or not _are_apart(op))
        for tensor in dict.fromkeys((*tensors, *made)):
            if tensor not in stored_in:
                self.buffers[tensor] = self._buffer(tensor)
        self.buffers.update((t, self.buffers[state]) for t, state in stored_in.items())

    def _buffer(self, tensor: Tensor) -> Buffer:
        declared = bound_buffer(tensor, self._binds)
        name = claimed(identifier(tensor.name) if declared is None else declared.name, self._names)
        if declared is None:
            return decl_buffer(tensor.shape, tensor.dtype, name)
        if not all(structural_equal(simplify(a), simplify(b)) for a, b in zip(declared.shape, tensor.shape)):
            raise error(
                f"the buffer bound to `{tensor.name}` has shape {declared.shape}; the tensor has {tensor.shape}"
            )
        return declared.replace(name=name)

    def _states(self, arguments: Sequence[Tensor], operations: Sequence[Operation]) -> dict[Tensor, Tensor]:
        """The results of scans in whose memory other tensors are kept: states, updates, and inits read by nobody else."""
        readers = [t for op in operations for t in op.input_tensors] + list(arguments)
        found: dict[Tensor, Tensor] = {}
        for op in (o for o in operations if isinstance(o, ScanOp)):
            self.inside.update(op.steps)
            for result, init, update, state in zip(op.outputs, op.init, op.update, op.states):
                if update in arguments:
                    raise error(
                        f"`{update.name}`, the update of scan `{op.name}`, is no result",
                        f"the scan itself, `{result.name}`, has all rows",
                        op.place,
                    )
                found |= {state: result, update: result}
                if isinstance(init.op, ComputeOp) and init.op.num_outputs == 1 and readers.count(init) == 1:
                    found[init] = result
                    self.inside.add(init.op)
        return found

    def local(self, buffer: Buffer) -> Buffer:
        """Memory of an operation's own like ``buffer``, under a name not yet taken."""
        made = decl_buffer(buffer.shape, buffer.dtype, claimed(buffer.name, self._names), scope=buffer.scope)
        self.memory.append(made)
        return made

    def block_name(self, name: str, op: Operation) -> str:
        """A name for a block of ``op``, not yet taken."""
        made = unique_name(identifier(name), self._block_names)
        self._block_names.add(made)
        self.blocks.setdefault(op, []).append(made)
        return made

    def access(self, e: Any, values: dict[Var, Any] | None = None) -> Any:
        """``e`` with variables replaced, reading buffers in the place of tensors."""

        def visit(item: Any) -> Any:
            return BufferLoad(self.buffers[item.tensor], item.indices) if isinstance(item, TensorLoad) else None

        return rewrite(substitute(e, values) if values else e, visit)


# ---------------------------------------------------------------- te.compute


@statement_of.register
def _(op: ComputeOp, lowering: Lowering) -> Stmt:
    if isinstance(op.body[0], Reduce):
        return _Reduction(op, lowering).statement()
    nest = _Nest(op, op.axis, lowering)
    names = [op.name] if len(op.body) == 1 else [t.name for t in op.outputs]
    needed = [n for n, t in enumerate(op.outputs) if t in lowering.buffers]
    return nest.around(seq(nest.block(names[n], nest.store(n, op.body[n])) for n in needed))


def _are_apart(op: Operation) -> bool:
    """Whether the tensors of an operation are computed apart, so that one that nobody reads is left out."""
    return isinstance(op, ComputeOp) and not isinstance(op.body[0], Reduce)


def _read_for(op: Operation, needed: Collection[Tensor]) -> list[Tensor]:
    """The tensors that an operation reads to compute its ``needed`` outputs; all its inputs where outputs are computed together."""
    if not _are_apart(op):
        return [*op.input_tensors, *(op.states if isinstance(op, ScanOp) else ())]
    return [load.tensor for tensor, value in zip(op.outputs, op.body) if tensor in needed for load in loads_in(value)]


class _Nest:
    """The loops over some axes of an operation, and blocks in them."""

    def __init__(self, op: ComputeOp, axes: Sequence[Any], lowering: Lowering):
        self.op = op
        self.axes = axes
        self.lowering = lowering
        self.kinds = ["reduce" if axis.iter_type == "reduce" else "spatial" for axis in axes]
        self.loops: list[tuple[Var, Range]] = []
        loop_values: dict[Var, Any] = {}
        taken: set[str] = set()
        self.shared = 0  # how many loops the operation stands in already
        if op in lowering.time:
            self.shared, self.kinds[0] = 1, "opaque"
            loop_values[axes[0].var] = lowering.time[op][0]
            self.loops.append(lowering.time[op])
            taken.add(self.loops[0][0].name)
        for axis in axes[self.shared :]:
            loop = Var(unique_name(identifier(axis.var.name), taken), axis.var.dtype)
            taken.add(loop.name)
            loop_values[axis.var] = loop
            self.loops.append((loop, _simple(lowering.access(axis.dom, dict(loop_values)))))

    def around(self, body: Stmt, first: int = 0, last: int | None = None) -> Stmt:
        """The loops from number ``first`` up to ``last`` around ``body``, without those that it stands in already."""
        for loop, domain in reversed(self.loops[max(first, self.shared) : last]):
            body = For(loop, domain.min, domain.extent, SERIAL, body, span=self.op.place)
        return body

    def iterators(self, count: int | None = None) -> list[IterVar]:
        """One iterator for each of the first ``count`` loops."""
        pairs = list(zip(self.loops, self.kinds))[:count]
        made = [IterVar(domain, Var(f"v_{loop.name}", loop.dtype), kind) for (loop, domain), kind in pairs]
        return made or [IterVar(Range(const(0), const(1)), Var("vi"))]

    def store(self, output: int, value: Expr) -> BufferStore:
        """Store of an element of an output, still in the axes of the operation."""
        buffer = self.lowering.buffers[self.op.output(output)]
        return BufferStore(buffer, value, tuple(a.var for a in self.op.axis), span=self.op.place)

    def block(self, name: str, body: Stmt, init: Stmt | None = None, count: int | None = None) -> Stmt:
        """A block over the first ``count`` loops, whose statements are in the axes of the operation."""
        iterators = self.iterators(count)
        values: dict[Var, Any] = {a.var: iv.var for a, iv in zip(self.axes, iterators)}
        inside = Analyzer({iv.var: iv.dom for iv in iterators if not is_const(iv.dom.extent, 1)})
        bindings: tuple[Expr, ...] = tuple(loop for loop, _ in self.loops[:count]) or (const(0),)

        def placed(s: Any) -> Any:
            if isinstance(s, IfThenElse):  # which element a reduction updates does not follow from its condition
                condition = inside.simplify(self.lowering.access(s.condition, values))
                return IfThenElse(condition, placed(s.then_case))  # noqa: F821  (deleted only afterwards)
            return None if s is None else simplify_stmt(self.lowering.access(s, values), inside)

        made = Block(tuple(iterators), (), (), self.lowering.block_name(name, self.op), placed(body), placed(init))
        del placed  # it refers to itself, and would stay until garbage is collected
        return BlockRealize(bindings, TRUE, with_regions(made), span=self.op.place)


class _Reduction:
    """The block of a reduction: ``init`` on the first iteration, or in its own block if the reduction may be empty."""

    def __init__(self, op: ComputeOp, lowering: Lowering):
        self.op = op
        self.nest = _Nest(op, (*op.axis, *op.reduce_axis), lowering)

    def statement(self) -> Stmt:
        op, nest = self.op, self.nest
        if not self._may_be_empty():
            return nest.around(nest.block(op.name, self._update(), self._start()))
        return nest.around(seq([self.reset(), self.update()]), last=len(op.axis))

    def reset(self) -> Stmt:
        """The initial values, in a block of their own, inside of the loops over the results."""
        return self.nest.block(f"{self.op.name}_init", self._start(), count=len(self.op.axis))

    def update(self) -> Stmt:
        """What is added to results that have their initial values, inside of the loops over the results."""
        return self.nest.around(self.nest.block(self.op.name, self._update()), len(self.op.axis))

    def _may_be_empty(self) -> bool:
        """Whether an extent that depends on other axes or on data may be 0, or one that is reduced over is."""
        if any(is_const(a.dom.extent, 0) for a in self.op.reduce_axis):
            return True
        known = Analyzer()
        loops = {loop for loop, _ in self.nest.loops}
        for loop, domain in self.nest.loops:
            parts = list(walk(domain.extent))
            varies = any(isinstance(n, BufferLoad) or (isinstance(n, Var) and n in loops) for n in parts)
            if varies and not known.can_prove(domain.extent >= 1):
                return True
            known.bind(loop, domain)
        return False

    def _start(self) -> Stmt:
        stores = []
        for n, e in enumerate(self.op.body):
            assert isinstance(e, Reduce)
            stores.append(self.nest.store(n, (e.init or e.combiner.identity)[e.value_index]))
        return seq(stores)

    def _update(self) -> Stmt:
        made: list[Stmt] = []
        first = 0
        for group in reduction_groups(self.op.body):
            made.append(self._combined(group, first))
            first += len(group)
        condition = self.op.body[0].condition  # type: ignore[union-attr]
        return seq(made) if is_const(condition, 1) else IfThenElse(condition, seq(made))

    def _combined(self, group: Sequence[Any], first: int) -> Stmt:
        """The results from number ``first`` on, combined with what one reduction adds to them."""
        e = group[0]
        outputs = [self.op.output(first + n) for n in range(len(group))]
        indices = tuple(a.var for a in self.op.axis)
        old = [TensorLoad(t, indices) for t in outputs]
        values = {**dict(zip(e.combiner.lhs, old)), **dict(zip(e.combiner.rhs, e.source))}
        results = [substitute(r, values) for r in e.combiner.result]
        if len(results) == 1:
            return self.nest.store(first, results[0])
        names = [Var(f"v_{identifier(t.name)}", t.dtype) for t in outputs]
        body = seq(self.nest.store(first + n, v) for n, v in enumerate(names))
        return in_lets(list(zip(names, results)), body)


def reset_and_update(op: ComputeOp, lowering: Lowering) -> tuple[Stmt, Stmt]:
    """A reduction in two nests: one stores the initial values, the other adds to them. Raises for another operation."""
    if not isinstance(op.body[0], Reduce):
        raise error(f"`{op.name}` is no reduction: it has no initial values", place=op.place)
    made, count = _Reduction(op, lowering), len(op.axis)
    return made.nest.around(made.reset(), last=count), made.nest.around(made.update(), last=count)


def _simple(domain: Range) -> Range:
    return Range(simplify(domain.min), simplify(domain.extent))


# ---------------------------------------------------------------- te.scan


@statement_of.register
def _(op: ScanOp, lowering: Lowering) -> Stmt:
    parts: list[Stmt] = []
    for init, state in zip(op.init, op.outputs):
        is_stored = lowering.buffers[init] is lowering.buffers[state]
        first = init.op if is_stored else _copied(init, state, lowering)
        parts.append(statement_of(first, lowering))
    time = Var(identifier(op.scan_axis.var.name), op.scan_axis.var.dtype)
    domain = _simple(lowering.access(op.scan_axis.dom))
    lowering.time.update((step, (time, domain)) for step in op.steps)
    steps = seq(statement_of(step, lowering) for step in op.steps)
    return seq([*parts, For(time, domain.min, domain.extent, SERIAL, steps, span=op.place)])


def _copied(init: Tensor, state: Tensor, lowering: Lowering) -> Operation:
    """What copies the first rows of a state, where their own tensor is read by others too."""
    axes = axes_of(init.shape, (f"i{n}" for n in range(init.ndim)))
    op = ComputeOp(f"{state.name}_init", axes, (TensorLoad(init, tuple(a.var for a in axes)),), place=state.op.place)
    lowering.buffers[op.output(0)] = lowering.buffers[state]
    return op


# ---------------------------------------------------------------- te.extern


@statement_of.register
def _(op: HybridOp, lowering: Lowering) -> Stmt:
    """The loops and stores as they are; blocks get names that are not taken."""

    def named(item: Any) -> Any:
        return item.replace(name=lowering.block_name(item.name, op)) if isinstance(item, Block) else None

    actual = [lowering.buffers[t] for t in (*op.inputs, *op.outputs)] + [lowering.local(b) for b in op.local_buffers]
    pairs = list(zip((*op.in_buffers, *op.out_buffers, *op.local_buffers), actual))
    return rewrite(substitute(op.body, {old.data: new.data for old, new in pairs}, dict(pairs)), named)


@statement_of.register
def _(op: ExternOp, lowering: Lowering) -> Stmt:
    """One block; buffers that the user declared are views of the tensors'."""
    ins = [lowering.buffers[t] for t in op.inputs]
    outs = [lowering.buffers[t] for t in op.outputs]
    variables: dict[Var, Any] = {}
    buffers: dict[Buffer, Buffer] = {}
    views: list[MatchBufferRegion] = []
    for declared, actual in zip((*op.in_buffers, *op.out_buffers), (*ins, *outs)):
        if own_variables(declared) == {declared.data} and not declared.strides:
            variables[declared.data] = actual.data
            buffers[declared] = actual
        else:
            views.append(MatchBufferRegion(declared, actual.full_region()))
    body = substitute(op.body, variables, buffers)
    reads, writes = (tuple(b.full_region() for b in dict.fromkeys(group)) for group in (ins, outs))
    name = lowering.block_name(op.name, op)
    made = Block((), reads, writes, name, body, match_buffers=tuple(views))
    return BlockRealize((), TRUE, made, span=op.place)
