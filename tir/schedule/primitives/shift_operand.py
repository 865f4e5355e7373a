"""Products of integers whose operand is stored with the other sign: shift_operand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...analysis.block_regions import with_regions
from ...analysis.evaluation import entered
from ...analysis.index import BlockRef
from ...analysis.reduction_forms import SUM, NotAReduction, Reduction, Update
from ...arith import Analyzer
from ...buffer import Buffer, IterVar, decl_buffer
from ...dtype import DType
from ...errors import require, require_none
from ...expr import Add, BufferLoad, Cast, Expr, Mul, Sub, Var, all_of, const
from ...stmt import SERIAL, Block, BlockRealize, BufferStore, Stmt, nest, seq
from ...visit import accesses, rewrite, substitute, uses_var
from ..primitive import primitive
from ..staged_copies import Stage, box_inside, elementwise_block
from ..state import State, pick_buffer, scope_of
from .pad_einsum import own_nest


@primitive(group="tensor units")
def shift_operand(state: State, block: BlockRef, operand: int | str | Buffer) -> State:
    """Store an integer operand of a sum of products with the other sign, moved by half of its range: int8 as uint8, 128 more.

    ``operand`` is the number of a region that ``block`` reads, or names the buffer. It is copied before, to ``…_shifted``; the sums go to
    ``…_shifted`` too, and the products of what was added, ``… * 128``, which are summed once for all results that have the same other
    factors, are taken off. As integers wrap around, results are the same for all values. So bytes of any two signs are multiplied by
    instructions that take one operand with a sign and one without (VNNI).

    Raises ``ScheduleError`` when the block is not alone in loops bound to its iterators, is no sum from 0 of products of integers with one
    factor ``T.cast(A[…], …)`` of that operand, or stores its results elsewhere than at its iterators, or constants.

    Before, and after ``sch.shift_operand("C", "B")``::

        for i, j, k in T.grid(4, 8, 16):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0
                C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "int32") * T.cast(B[vk, vj], "int32")

        B_shifted = T.alloc_buffer((16, 8), "uint8")
        C_terms = T.alloc_buffer((4,), "int32")
        C_shifted = T.alloc_buffer((4, 8), "int32")
        for ax0, ax1 in T.grid(16, 8):
            with T.block("B_shifted"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                B_shifted[v0, v1] = T.Cast("uint8", T.Cast("int32", B[v0, v1]) + 128)
        for ax0, ax1 in T.grid(4, 16):
            with T.block("C_terms"):
                vi, vk = T.axis.remap("SR", [ax0, ax1])
                with T.init():
                    C_terms[vi] = 0
                C_terms[vi] = C_terms[vi] + T.Cast("int32", A[vi, vk])
        for i, j, k in T.grid(4, 8, 16):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C_shifted[vi, vj] = 0
                C_shifted[vi, vj] = C_shifted[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", B_shifted[vk, vj])
        for ax0, ax1 in T.grid(4, 8):
            with T.block("C_shifted"):
                vi, vj = T.axis.remap("SS", [ax0, ax1])
                C[vi, vj] = C_shifted[vi, vj] - C_terms[vi] * 128
    """
    body = block.block
    source = pick_buffer(block, "reads", operand)
    require(source.dtype.lanes == 1 and source.dtype.code in ("int", "uint") and source.dtype.bits > 1,
            "{0} holds {1}, which has no sign to exchange", source.name, source.dtype, nodes=[block.node])  # fmt: skip
    loops = own_nest(block)
    around = [p for p in block.loops() if p not in loops or p.node.kind != SERIAL]
    legal = "shift_operand before loops are made parallel or vectors"
    require_none(around, "loop {0} is not one serial loop for an iterator of block {1}", block, legal=legal)
    update = _sum(block)
    own, others = _factors(block, update, source)
    store, spatial = update.store, [i for i in body.iter_vars if i.iter_type == "spatial"]
    used = [i for i in store.indices if uses_var(i, {s.var for s in body.iter_vars})]
    require(len(used) == len(spatial) and all(any(i is s.var for i in used) for s in spatial),
            "block {0} does not store to one place for each of its spatial iterators", block, nodes=[block.node])  # fmt: skip
    return _Shift(state, block, source, own, others, store).stage(loops[0].node).after


def _sum(block: BlockRef) -> Update:
    """The one update of a block that sums up from zero."""
    found = Reduction.of(block.block)
    one = None if isinstance(found, NotAReduction) else found.of_one_value()
    how = one.combination if one else None
    require(
        one
        and how
        and how.combiner is SUM
        and len(how.terms) == 1
        and not how.terms[0].negated
        and found.starts_at_identity(),  # type: ignore[union-attr]
        "block {0} is no sum of one term that starts at 0",
        block,
        nodes=[block.node],
        legal="a block with the init 0 that adds one product to its result",
    )
    assert one is not None
    return one


def _factors(block: BlockRef, update: Update, source: Buffer) -> tuple[Cast, list[Expr]]:
    """The factor of a term that is an element of ``source``, converted, and the others."""
    assert update.combination is not None
    factors = list(_multiplied(update.combination.terms[0].value))
    own = [f for f in factors if isinstance(f, Cast) and isinstance(f.value, BufferLoad) and f.value.buffer is source]
    reads = [a for a in accesses(block.block) if a.buffer is source]
    require(
        len(own) == len(reads) == 1 < len(factors)
        and own[0].dtype.code in ("int", "uint")
        and own[0].dtype.bits > source.dtype.bits,
        "block {0} has no product of which one factor, and nothing else, is an element of {1}, converted to a wider integer",
        block,
        source.name,
        nodes=[block.node],
        legal=f'a product with one factor `T.cast({source.name}[…], "int32")`',
    )
    return own[0], [f for f in factors if f is not own[0]]


def _multiplied(e: Expr) -> Iterator[Expr]:
    if isinstance(e, Mul):
        yield from _multiplied(e.a)
        yield from _multiplied(e.b)
    else:
        yield e


def _other_sign(dtype: DType) -> DType:
    return DType(f"{'uint' if dtype.code == 'int' else 'int'}{dtype.bits}")


class _Shift:
    """The blocks that take the place of a sum of ``own`` by ``others``, where ``own`` is read of a copy with the other sign."""

    def __init__(
        self, state: State, block: BlockRef, source: Buffer, own: Cast, others: list[Expr], store: BufferStore
    ):
        self.state, self.block, self.source, self.own, self.others, self.store = (
            state,
            block,
            source,
            own,
            others,
            store,
        )
        self.half = 1 << (source.dtype.bits - 1)
        result = store.buffer
        used = [
            i for i in block.block.iter_vars if i.iter_type == "spatial" and any(uses_var(f, i.var) for f in others)
        ]
        self.kept = used  # the iterators of which the sum of the other factors depends
        self.copy = decl_buffer(source.shape, _other_sign(source.dtype), f"{source.name}_shifted")
        shape = [i.dom.extent for i in used] or [1]
        self.terms = decl_buffer(shape, result.dtype, f"{result.name}_terms")
        self.sums = decl_buffer(result.shape, result.dtype, f"{result.name}_shifted")

    def stage(self, top: Stmt) -> Stage:
        scope = scope_of(self.block)
        taken: set[str] = set()

        def named(name: str) -> str:
            taken.add(found := self.state.fresh_block_name(name, taken))
            return found

        parts = [
            self.copied(named(self.copy.name)),
            self.summed(named(self.terms.name)),
            self.swapped(top),
            self.taken_off(named(self.sums.name)),
        ]
        stage = Stage(self.state, scope, scope, (self.copy, self.terms, self.sums), {top: seq(parts)})
        stage.require_initialized(self.source)
        return stage

    def copied(self, name: str) -> Stmt:
        """The operand with half of its range added or taken off."""
        source, wide = self.source, self.own.dtype
        box = box_inside([self.block], source, scope_of(self.block), "reads")
        by = const(self.half, wide)

        def moved(point: tuple[Var, ...]) -> Stmt:
            value = Cast(wide, BufferLoad(source, point))
            shifted = Add(value, by) if source.dtype.code == "int" else Sub(value, by)
            return BufferStore(self.copy, Cast(self.copy.dtype, shifted), point)

        return elementwise_block(name, box, source.full_region().region, moved)

    def at(self, iterators: dict[Var, Var]) -> tuple[Expr, ...]:
        """The place of a sum of the other factors."""
        return tuple(iterators.get(i.var, i.var) for i in self.kept) or (const(0),)

    def summed(self, name: str) -> Stmt:
        """The sum of the other factors, for each result that has others."""
        body = self.block.block
        iterators = [i for i in body.iter_vars if i.iter_type == "reduce" or i in self.kept]
        place, term = self.at({}), self.others[0]
        for factor in self.others[1:]:
            term = Mul(term, factor)
        update = BufferStore(self.terms, Add(BufferLoad(self.terms, place), term), place)
        init = BufferStore(self.terms, const(0, self.terms.dtype), place)
        return _in_loops(name, iterators, update, init)

    def swapped(self, top: Stmt) -> Stmt:
        """The nest, of the copy."""
        load = self.own.value
        result = self.store.buffer

        def visit(item: Any) -> Any:
            if item is load:
                return load.replace(buffer=self.copy)
            if isinstance(item, (BufferLoad, BufferStore)) and item.buffer is result:
                return rewrite(item.replace(buffer=self.sums), visit)
            return None

        body = self.block.block
        made = body.replace(body=rewrite(body.body, visit), init=rewrite(body.init, visit))
        return rewrite(top, lambda n: with_regions(made) if n is body else None)

    def taken_off(self, name: str) -> Stmt:
        """The results: the sums without what was added."""
        body, result = self.block.block, self.store.buffer
        spatial = [i for i in body.iter_vars if i.iter_type == "spatial"]
        more = Mul(BufferLoad(self.terms, self.at({})), const(self.half, result.dtype))
        sums = BufferLoad(self.sums, self.store.indices)
        value = Sub(sums, more) if self.source.dtype.code == "int" else Add(sums, more)
        lengths = [i.dom.extent for i in body.iter_vars if i.iter_type == "reduce"]
        return _in_loops(
            name, spatial, BufferStore(result, value, self.store.indices), None, entered(lengths, Analyzer())
        )


def _in_loops(
    name: str, iterators: list[IterVar], body: Stmt, init: Stmt | None, where: list[Expr] | tuple[Expr, ...] = ()
) -> Stmt:
    """A block with copies of ``iterators``, each in a loop of its own."""
    own = {i.var: i.var.replace() for i in iterators}
    loops = [(i.var.replace(name=f"ax{n}"), i.dom.extent) for n, i in enumerate(iterators)]
    iters = tuple(i.replace(var=own[i.var]) for i in iterators)
    new = Block(iters, (), (), name, substitute(body, own), init=None if init is None else substitute(init, own))
    return nest(loops, BlockRealize(tuple(v for v, _ in loops), all_of(where), with_regions(new)))
