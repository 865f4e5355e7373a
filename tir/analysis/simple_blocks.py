"""Syntactic tests of legality: true if a block's form proves it, without sets. False means "not shown"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..aliases import sharing
from ..arith.itermap import detect_iter_map
from ..arith.linear import is_index, key, linear
from ..buffer import Range
from ..expr import Expr, Var, constant
from ..node import once
from ..stmt import Block, BlockRealize, BufferStore, For
from ..visit import accesses, bound_inside, is_pure, uses_var, vars_in
from .contents import free_in, members_of
from .evaluation import is_steered_by_memory
from .reduction_forms import Reduction


def same_index(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two index lists are equal, and have no boxes in them that are two objects."""
    return len(a) == len(b) and all(
        x is y or (isinstance(x, Expr) and isinstance(y, Expr) and key(x) == key(y)) for x, y in zip(a, b)
    )


def iterators(block: Block, kind: str) -> list[Var]:
    return [i.var for i in block.iter_vars if i.iter_type == kind]


@once
def is_simple_block(block: Block) -> bool:
    """Whether instances of ``block`` commute, as a syntactic test.

    A simple block has unconditional stores that are injective in the spatial iterators (and use no reduction iterator). It
    reads its outputs only at the element written and, under reduction iterators, only as the accumulator of a
    ``Reduction``.
    """
    if (
        block.match_buffers
        or block.alloc_buffers
        or not {i.iter_type for i in block.iter_vars} <= {"spatial", "reduce"}
    ):
        return False
    stores = [s for part in (block.init, block.body) if part is not None for s in members_of(part)]
    if not all(isinstance(s, BufferStore) for s in stores) or not has_own_elements(block):
        return False
    if not all(map(is_pure, stores)):
        return False
    return not iterators(block, "reduce") or isinstance(Reduction.of(block), Reduction)


def has_one_element(block: Block) -> bool:
    """Whether an instance of ``block`` accesses one element of each buffer that it stores to, whatever its reduction iterators are."""
    return _targets(block, iterators(block, "reduce")) is not None


def _targets(block: Block, others: Iterable[Var]) -> Mapping[Var, BufferStore] | None:
    """By pointer, a store to each buffer that a block stores to, if an instance accesses one element of it, which none
    of ``others`` chooses, nor a variable inside; None otherwise."""
    found = [a for part in (block.init, block.body) if part is not None for a in accesses(part)]
    target: dict[Var, BufferStore] = {}
    for store in found:
        if isinstance(store, BufferStore):
            target.setdefault(store.buffer.data, store)
    used = vars_in(*(i for store in target.values() for i in store.indices))
    inside = used.difference(i.var for i in block.iter_vars)
    if not used.isdisjoint(others) or not (not inside or inside.isdisjoint(bound_inside(block))):
        return None
    return target if all(_same_element(a, target[a.buffer.data]) for a in sharing(found, target)) else None


def has_own_elements(block: Block) -> bool:
    """Whether different values of its spatial iterators store to different elements, and load of what ``block`` stores to
    these alone."""
    spatial = {i.var: i.dom for i in block.iter_vars if i.iter_type == "spatial"}
    target = _targets(block, [i.var for i in block.iter_vars if i.var not in spatial])
    moving = {v: dom for v, dom in spatial.items() if dom is None or constant(dom.extent) != 1}
    return target is not None and all(_are_injective(store.indices, moving) for store in target.values())


def _same_element(a: Any, b: BufferStore) -> bool:
    """Whether two accesses of one memory are of the same element: of other names of it, that is not known."""
    return a.buffer is b.buffer and same_index(a.indices, b.indices)


def _are_injective(indices: Sequence[Expr], domains: Mapping[Var, Range | None]) -> bool:
    """Whether no two points of ``domains`` have the same indices."""
    if domains.keys() <= set(indices):
        return True
    known = {v: dom for v, dom in domains.items() if dom is not None}
    scalar = len(known) == len(domains) and all(is_index(i.dtype) for i in indices)
    return scalar and bool(detect_iter_map(indices, known, check="bijective"))


def commutes_under_any_order(block: BlockRealize, loops: Sequence[For]) -> bool:
    """Whether every order of ``loops`` around ``block`` alone gives the same result."""
    inner = block.block
    names = {f.loop_var for f in loops}
    if not is_simple_block(inner) or not names.isdisjoint(free_in(inner)) or is_steered_by_memory(block, loops):
        return False
    if inner.init is None:
        return True
    used: dict[str, set[Var]] = {"spatial": set(), "reduce": set()}
    for iterator, value in zip(inner.iter_vars, block.iter_values):
        used[iterator.iter_type] |= vars_in(value)
        if iterator.iter_type == "reduce" and not _never_falls(value):
            return False
    if not used["spatial"].isdisjoint(used["reduce"]) or not used["reduce"].isdisjoint(vars_in(block.predicate)):
        return False
    # The first instance of each element must be the one that runs init, in any order, and no later one: all reduction
    # loops are at their start in this one alone, unless a loop repeats the element.
    spatial = [v for i, v in zip(inner.iter_vars, block.iter_values) if i.iter_type == "spatial"]
    rest = [f for f in loops if f.loop_var not in used["reduce"] and constant(f.extent) != 1]
    repeating = {f.loop_var for f in rest}
    if repeating <= _determined(spatial, rest):
        return True
    return bool(detect_iter_map(spatial, {f.loop_var: f.domain for f in rest}, check="bijective"))


def _never_falls(value: Expr) -> bool:
    """Whether ``value`` is a sum that no step of a variable makes smaller."""
    steps = linear(value).coefficients()
    return steps is not None and all(c >= 0 for c in steps.values())


def distinguishes_iterations(block: BlockRealize, loop: For, inside: Sequence[For]) -> bool:
    """Whether different iterations of ``loop`` run ``block`` for different elements, for any iterations of
    ``inside``."""
    inner = block.block
    if not is_simple_block(inner) or loop.loop_var in free_in(inner) or is_steered_by_memory(block, inside):
        return False
    if any(f.loop_var in free_in(inner) for f in inside):
        return False
    using = [(i, value) for i, value in zip(inner.iter_vars, block.iter_values) if uses_var(value, loop.loop_var)]
    if any(i.iter_type != "spatial" for i, _ in using):
        return False
    return elements_distinguish([value for _, value in using], loop, inside)


def elements_distinguish(indices: Sequence[Expr], loop: For, others: Sequence[For]) -> bool:
    """Whether different iterations of ``loop`` access different elements at ``indices``, for any iterations of
    ``others``."""
    return loop.loop_var in _determined(indices, (loop, *others))


def _determined(indices: Iterable[Expr], loops: Iterable[For]) -> set[Var]:
    """The variables of ``loops`` whose values one of ``indices`` determines: it is a sum of loops with strides in mixed
    radix."""
    extents = {f.loop_var: constant(f.extent) for f in loops}
    found: set[Var] = set()
    for index in indices:
        terms = linear(index).coefficients()
        if terms is not None:
            found.update(_digits({v: c for v, c in terms.items() if v in extents}, extents))
    return found


def _digits(strides: Mapping[Var, int], extents: Mapping[Var, int | None]) -> Iterable[Var]:
    """The variables with these ``strides`` in a sum, if it determines all of them; none otherwise."""
    moving = sorted(strides, key=lambda v: (abs(strides[v]), v.name))
    reach = 0  # the largest difference that smaller terms can make
    for v in moving:
        extent = extents[v]
        # of unknown size: fine only as the largest term
        if abs(strides[v]) <= reach or (extent is None and v is not moving[-1]):
            return ()
        reach += abs(strides[v]) * max((extent or 1) - 1, 0)
    return moving
