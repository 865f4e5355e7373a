"""Blockize of a set of blocks: one block around several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...analysis.block_regions import with_regions
from ...analysis.index import BlockRef, LoopRef, Place
from ...arith.linear import key
from ...buffer import IterVar
from ...errors import require, require_none
from ...expr import Expr, Var
from ...stmt import Block, BlockRealize, SeqStmt, Stmt, seq
from ...visit import substitute
from ..handles import BlockRV
from ..state import State
from .blockize import divide, outer_block, require_only_loops


def blockize_set(state: State, blocks: Sequence[BlockRef]) -> tuple[State, BlockRV]:
    """The program with one block around ``blocks`` and, for each, the loops below their common loops; and that block."""
    require(blocks, "blockize needs at least one block")
    scope = blocks[0].scope
    require(scope is not None, "the root block cannot be blockized")
    for ref in blocks:
        require(
            ref.scope is scope, "block {0} and block {1} are not in the same block", blocks[0], ref, nodes=[ref.node]
        )
    shared = [p for p in blocks[0].loops() if all(p in b.loops() for b in blocks)]
    home: Place = shared[-1] if shared else scope  # type: ignore[assignment]
    body: Any = home.node.body if isinstance(home, LoopRef) else home.block.body  # type: ignore[union-attr]
    members = list(body.stmts) if isinstance(body, SeqStmt) else [body]
    inside = [n for n, s in enumerate(members) if any(_holds(s, b) for b in blocks)]
    first, last = inside[0], inside[-1]
    others = [
        r
        for r in state.index.blocks_below(home)
        if r not in blocks and any(_holds(s, r) for s in members[first : last + 1])
    ]
    legal = "add it to the set, or move it away"
    require_none(others, "block {0} is between the blocks to be merged", legal=legal)
    require(len(inside) == last - first + 1 == len(blocks),
            "between the blocks of the set there is more than their own loops", nodes=[b.node for b in blocks])  # fmt: skip
    name = state.fresh_block_name("_".join(b.name for b in blocks) + "_o")
    ordered = sorted(blocks, key=lambda b: next(n for n, s in enumerate(members) if _holds(s, b)))
    made = _around(home, ordered, name)
    whole = made if len(members) == len(blocks) else seq([*members[:first], made, *members[last + 1 :]])
    after = state.replace(body, whole)
    return after, after.block_rv(name)


def _holds(statement: Stmt, block: BlockRef) -> bool:
    return statement is block.node or any(p.node is statement for p in block.ancestors())


def _around(home: Place, blocks: Sequence[BlockRef], name: str) -> BlockRealize:
    """The block around ``blocks``, each with its own loops below ``home``. Its iterators are the parts of theirs that
    depend on the loops around, without duplicates; those of extent one are omitted."""
    iters: dict[Any, tuple[IterVar, Expr]] = {}
    condition: Expr | None = None
    nests: list[Stmt] = []
    for ref in blocks:
        own = [p for p in ref.loops() if home in p.ancestors()]
        require_only_loops(own[0] if own else ref, ref)
        outer = outer_block(ref, own, divide(ref, own), name, keep_units=False)
        require(outer.block.init is None,
                "the loops around the set reduce in block {0}, and its init has no place in a block around several",
                ref, legal=f'decompose_reduction("{ref.name}", …) first')  # fmt: skip
        require(condition is None or key(condition) == key(outer.predicate),
                "block {0} runs under another condition on the loops around the set than block {1}",
                ref, blocks[0], nodes=[ref.node])  # fmt: skip
        condition = outer.predicate
        renamed: dict[Var, Expr] = {}
        for iterator, value in zip(outer.block.iter_vars, outer.iter_values):
            known, _ = iters.setdefault((key(value), key(iterator.dom.extent)), (iterator, value))
            require(known.iter_type == iterator.iter_type,
                    "`{0}` is a {1} iterator in one block of the set and a {2} iterator in block {3}",
                    iterator.var.name, known.iter_type, iterator.iter_type, ref)  # fmt: skip
            renamed[iterator.var] = known.var
        nests.append(substitute(outer.block.body, renamed))
    assert condition is not None
    block = Block(tuple(i for i, _ in iters.values()), (), (), name, seq(nests))
    return BlockRealize(tuple(v for _, v in iters.values()), condition, with_regions(block))
