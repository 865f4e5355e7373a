"""Classes of programs that exposed bugs of schedules. Each is a predicate on programs, so that a run of the fuzzer can
count what it drew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tir.analysis.evaluation import evaluated_parts, places_of_views
from tir.analysis.users import bare_stores
from tir.arith import simplify
from tir.buffer import Buffer
from tir.expr import BufferLoad, Cast, Expr, Var, const, constant
from tir.function import IRModule, PrimFunc
from tir.node import Memo, Node
from tir.stmt import AssertStmt, Block, BlockRealize, BufferStore, For, IfThenElse, LetStmt
from tir.visit import has_load, substitute, vars_in, walk

Question = Callable[[IRModule], bool]


def _any(found: Callable[[PrimFunc], bool]) -> Question:
    """The predicate on modules: whether ``found`` holds for any function."""
    return lambda module: any(found(f) for f in module.functions.values())


_NODES: Memo[tuple[Node, ...]] = Memo()


def _nodes(func: PrimFunc) -> tuple[Node, ...]:
    """Every node of the body: each of the questions below looks through them."""
    found = _NODES.get(func)
    return _NODES.setdefault(func, tuple(walk(func.body))) if found is None else found


def _realizes(func: PrimFunc) -> Iterator[BlockRealize]:
    return (n for n in _nodes(func) if isinstance(n, BlockRealize) and n.block.name != "root")


def _loops(func: PrimFunc) -> Iterator[For]:
    return (n for n in _nodes(func) if isinstance(n, For))


def _bare_store(func: PrimFunc) -> bool:
    root = func.body
    return bool(bare_stores(root.block.body if isinstance(root, BlockRealize) else root))


def _bound(part: str) -> Question:
    return _any(lambda f: any(has_load(getattr(loop, part)) for loop in _loops(f)))


def _realized(value: Callable[[BlockRealize], bool]) -> Question:
    return _any(lambda f: any(value(r) for r in _realizes(f)))


def _binding(found: Callable[[Any], bool]) -> Question:
    return _realized(lambda r: any(found(v) for v in r.iter_values))


def _slope(e: Any) -> int:
    """By how much a binding that uses one loop grows from iteration 0 to 1; 1 for any other binding."""
    names = vars_in(e)
    if len(names) != 1 or has_load(e):
        return 1
    (var,) = names
    first, second = (constant(simplify(substitute(e, {var: const(n, var.dtype)}))) for n in (0, 1))
    return 1 if first is None or second is None else second - first


def _values(func: PrimFunc, e: Any) -> list[Any]:
    """The values of a binding that uses one loop of at most eight iterations; none of any other binding."""
    loops = {loop.loop_var: loop for loop in _loops(func)}
    names = vars_in(e)
    loop = loops.get(next(iter(names))) if len(names) == 1 and not has_load(e) else None
    start, extent = (None, None) if loop is None else (constant(loop.min), constant(loop.extent))
    if loop is None or start is None or extent is None or extent > 8:
        return []
    var = loop.loop_var
    return [constant(simplify(substitute(e, {var: const(start + n, var.dtype)}))) for n in range(extent)]


def _repeated_instance(func: PrimFunc) -> bool:
    """Whether an iterator of a block that reduces takes a value that it took before."""
    blocks = (r for r in _realizes(func) if any(v.iter_type == "reduce" for v in r.block.iter_vars))
    found = (_values(func, value) for r in blocks for value in r.iter_values)
    return any(len(set(values)) < len(values) for values in found)


def _nested_reader(func: PrimFunc) -> bool:
    """Whether a nested block reads a buffer that a block outside writes."""
    for outer in _realizes(func):
        inner = [b for b in walk(outer.block.body) if isinstance(b, Block)]
        read = {r.buffer for b in inner for r in b.reads}
        beside = [r.block for r in _realizes(func) if r.block is not outer.block and r.block not in inner]
        if read & {w.buffer for b in beside for w in b.writes}:
            return True
    return False


def _parametric_view(func: PrimFunc) -> bool:
    """Whether a view has a stride that an argument gives."""
    given = {v for b in func.buffer_map.values() for v in (*b.shape, *b.strides) if isinstance(v, Var)} | {*func.params}
    return any(s in given for r in _realizes(func) for m in r.block.match_buffers for s in m.buffer.strides)


def _sizes(func: PrimFunc) -> Iterator[Any]:
    return (size for buffer in func.buffer_map.values() for size in buffer.shape)


def _widths(func: PrimFunc) -> bool:
    loops = {str(loop.loop_var.dtype) for loop in _loops(func)}
    sizes = {str(s.dtype) for n in _nodes(func) if isinstance(n, (BufferLoad, BufferStore)) for s in n.buffer.shape}
    return len(loops | sizes) > 1


def _updates(func: PrimFunc) -> Iterator[tuple[BufferStore, Block]]:
    """Stores, in blocks with a reduction iterator, to elements that they load."""
    for realize in _realizes(func):
        if any(v.iter_type == "reduce" for v in realize.block.iter_vars):
            for n in walk(realize.block.body):
                if isinstance(n, BufferStore) and any(_loads(x, n.buffer) for x in walk(n.value)):
                    yield n, realize.block


def _loads(e: Any, buffer: Buffer) -> bool:
    return isinstance(e, BufferLoad) and e.buffer is buffer


def _two_names(func: PrimFunc) -> bool:
    named = {n.buffer for n in _nodes(func) if isinstance(n, (BufferLoad, BufferStore))}
    return len({b.data for b in named}) < len(named)


def _bitwise(func: PrimFunc) -> bool:
    return any("bitwise" in str(getattr(n, "op", "")) for s, _ in _updates(func) for n in walk(s.value))


def _several_terms(func: PrimFunc) -> bool:
    from tir.analysis.reduction_forms import Reduction

    found = [Reduction.of(block) for _, block in _updates(func)]
    return any(
        isinstance(r, Reduction) and any(u.combination is not None and len(u.combination.terms) > 1 for u in r.updates)
        for r in found
    )


def _lazy_load(e: Expr) -> bool:
    return any(condition is not None and has_load(part) for part, condition in evaluated_parts(e))


def _symbolic(func: PrimFunc) -> bool:
    return any(isinstance(x, Var) for s in _sizes(func) for x in walk(s))


CLASSES: dict[str, Question] = {
    "predicate on memory": _realized(lambda r: has_load(r.predicate)),
    "predicate on loops": _realized(lambda r: constant(r.predicate) is None and not has_load(r.predicate)),
    "`if` on memory": _any(lambda f: any(isinstance(n, IfThenElse) and has_load(n.condition) for n in _nodes(f))),
    "let of memory": _any(lambda f: any(isinstance(n, LetStmt) and has_load(n.value) for n in _nodes(f))),
    "store outside of blocks": _any(_bare_store),
    "extent on memory": _bound("extent"),
    "start on memory": _bound("min"),
    "binding on memory": _binding(has_load),
    "place of a view on memory": _realized(lambda r: bool(places_of_views(r.block))),
    "loop with a start": _any(lambda f: any(constant(loop.min) != 0 for loop in _loops(f))),
    "iterator runs backwards": _binding(lambda e: _slope(e) < 0),
    "iterator in strides": _binding(lambda e: abs(_slope(e)) > 1),
    "iterator takes a value twice": _binding(lambda e: _slope(e) == 0),
    "view (match_buffer)": _realized(lambda r: bool(r.block.match_buffers)),
    "view with strides that are variables": _realized(
        lambda r: any(isinstance(s, Var) for m in r.block.match_buffers for s in m.buffer.strides)
    ),
    "view with strides that are parameters": _any(_parametric_view),
    "memory of two names": _any(_two_names),
    "reduction with an instance that runs twice": _any(_repeated_instance),
    "int64 beside int32": _any(_widths),
    "consumer in a nested block": _any(_nested_reader),
    "memory of a block's own": _realized(lambda r: bool(r.block.alloc_buffers)),
    "empty loop": _any(lambda f: any(constant(loop.extent) == 0 for loop in _loops(f))),
    "size that may be zero": _any(_symbolic),
    "several functions": lambda module: len(module.functions) > 1,
    "condition on a scalar": _any(lambda f: any(isinstance(n, AssertStmt) for n in _nodes(f))),
    "reduction by bits": _any(_bitwise),
    "reduction of several terms": _any(_several_terms),
    "reduction in a wider type": _any(
        lambda f: any(isinstance(n, Cast) for s, _ in _updates(f) for n in walk(s.value))
    ),
    "several outputs": _realized(lambda r: len({w.buffer for w in r.block.writes}) > 1),
    "loop marked before any step": _any(lambda f: any(loop.kind != "serial" for loop in _loops(f))),
    "load that is lazy": _any(lambda f: any(isinstance(n, Expr) and _lazy_load(n) for n in _nodes(f))),
    "arguments that may overlap": _any(lambda f: not f.attrs.get("tir.noalias", True)),
    "place that data decides": _any(
        lambda f: any(has_load(i) for n in _nodes(f) if isinstance(n, (BufferLoad, BufferStore)) for i in n.indices)
    ),
}


def classes_of(program: PrimFunc | IRModule) -> list[str]:
    """The names in :data:`CLASSES` of the classes that a program belongs to."""
    module = IRModule.of(program)
    return [name for name, question in CLASSES.items() if question(module)]
