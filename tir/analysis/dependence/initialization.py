"""Definite initialization: whether everything that is read of a buffer was written before, in a function or in each
iteration of a loop, which makes the buffer privatizable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...aliases import shares_memory, sharing
from ...buffer import Buffer
from ...expr import Var
from ...function import PrimFunc
from ...levels import ends_with_launch, shared_axes
from ...poly import Formula, Names, NotAffine, Relation
from ...stmt import BlockRealize, BufferStore, For
from ..contents import path_to
from ..users import used_memory
from .relations import (
    Context,
    StatementRelations,
    has_bits,
    is_exact,
    once_each,
    show_element,
    timed,
    without_swizzles,
)
from .statements import Access, Statement, bare_statements_of, statements_of
from .tiers import NOT_SHOWN, PROVED, Question, Refuted, Tier, Unknown, Verdict, tier
from .written import reads_after_writes


@dataclass(frozen=True, eq=False)
class Initialized(Question):
    """Every read of ``buffer`` in ``where``, a function or an iteration of the innermost of nested loops, is of an element that
    an earlier instance wrote there.

    For all reads R(i, e) of instances i and elements e: some write W(j, e) has j before i in the schedule.
    """

    where: PrimFunc | tuple[For, ...]
    buffer: Buffer

    def anchor(self) -> tuple[Any, Any] | None:
        return (self.where, self.buffer) if isinstance(self.where, PrimFunc) else None

    def __str__(self) -> str:
        return f"`{self.buffer.name}` is written before it is read"

    def unknown(self, error: Any) -> Unknown:
        return Unknown(f"cannot prove that the step keeps the program's meaning: {error}")

    def _unknown(self, reason: str, *nodes: Any) -> Unknown:
        return Unknown(f"cannot prove that {self}: {reason}", nodes=nodes)

    @property
    def _loops(self) -> tuple[For, ...]:
        return () if isinstance(self.where, PrimFunc) else self.where

    @property
    def _body(self) -> Any:
        return self.where.body if isinstance(self.where, PrimFunc) else self.where[-1].body

    @tier(Tier.ITERATOR_MAP)
    def by_boxes(self) -> Verdict:
        return PROVED if reads_after_writes(self._body, self.buffer, self._loops) else NOT_SHOWN

    def _users(self) -> list[Statement]:
        """The statements that access the buffer. Raises ``NotAffine`` if its elements are swizzled differently."""
        units = statements_of(self._body) if isinstance(self.where, PrimFunc) else bare_statements_of(self._body)
        found = without_swizzles([u for u in units if u.accesses_of(self.buffer)])
        if any(has_bits(a) for u in found for a in u.accesses_of(self.buffer)):
            raise NotAffine(
                f"`{self.buffer.name}`",
                "bitwise operations, not alike in all accesses, choose its elements; copy a buffer before a swizzled layout",
            )
        return found

    def _restriction(self, names: Names) -> Callable[[Relation], Relation]:
        """Leaves out of a relation the sizes, and the iterations of the loops around, that there are not."""
        if isinstance(self.where, PrimFunc):
            return Context(self.where, self.where.body, names).restrict
        around = Formula(names)
        for loop in self.where:
            around.within(loop.loop_var, loop.min, loop.extent)
        known = around.set([]).parameters()
        return lambda found: found.where(known)

    @tier(Tier.SETS)
    def by_sets(self) -> Verdict:
        names = Names()
        buffer = self.buffer
        sides = [*map(once_each, timed(self._users(), buffer, names))]
        possible = self._restriction(names)
        for reader in sides:
            for read in reader.reads:
                if not shares_memory(read.access, buffer):
                    continue
                if read.access.buffer is not buffer:
                    if self._loops:
                        return self._unknown("it is read through another view", reader.unit.node)
                    continue
                found = possible(_not_written(reader, read, sides, buffer)).sample()
                if found is not None:
                    unsure = next((s.unit for s in sides for w in s.writes if _may_write(s, w, buffer)), None)
                    if unsure is not None:
                        return self._unknown(f"it is not known which elements `{unsure.name}` writes", unsure.node)
                    at, element = found
                    return Refuted(
                        f"an element of `{buffer.name}` would be read without having been written",
                        [f"{reader.show(at)} reads {show_element(read.access, element)}, which nothing wrote before"],
                        (reader.unit.node,),
                    )
        return PROVED


def _not_written(
    reader: StatementRelations, read: Any, sides: Sequence[StatementRelations], buffer: Buffer
) -> Relation:
    """The instances of ``reader`` and the elements that they read and no earlier instance wrote."""
    lifetime = _same_lifetime(reader, buffer)
    bare = read.map.domain_in(reader.before.domain())
    for writer in sides:
        for write in writer.writes:
            if _surely_writes(writer, write, buffer):
                earlier = reader.before.after(writer.before).range_in(writer.before.domain())
                if lifetime:
                    earlier = earlier.intersect(reader.before.then(lifetime).then(writer.before.reverse()))
                bare = bare.subtract(earlier.then(write.map))
                if writer is reader and _stores_first(writer.unit, write.access, read.access):
                    bare = bare.subtract(write.map)
    return bare


def _same_lifetime(user: StatementRelations, buffer: Buffer) -> Relation | None:
    """The pairs of timestamps that see the same ``buffer``, allocated once; None if all do."""
    length, rank = user.unit.lifetimes.get(buffer.data, 0), user.before.target_rank
    several = any(isinstance(t, Var) for t in user.unit.time[:length])
    return Relation.same_prefix(length, rank) if several else None


def _may_write(side: StatementRelations, write: Any, buffer: Buffer) -> bool:
    """Whether ``write`` is of memory of ``buffer``, and not known to store where its relation says."""
    return shares_memory(write.access, buffer) and not _surely_writes(side, write, buffer)


def _surely_writes(side: StatementRelations, write: Any, buffer: Buffer) -> bool:
    """Whether ``write`` is known to store where its relation says: data does not decide it, nor is it by another name."""
    return write.access.buffer is buffer and is_exact(side.unit, write.access)


def _stores_first(unit: Statement, store: Access, load: Access) -> bool:
    """Whether an instance of ``unit`` has completed ``store`` before ``load``."""
    together = bool(store.loops and load.loops) and store.loops[0][0] is load.loops[0][0]
    order = {id(access): n for n, access in enumerate(unit.accesses)}
    return isinstance(store.node, BufferStore) and not together and order[id(store)] < order[id(load)]


def is_privatizable(buffer: Buffer, loops: Sequence[For]) -> bool:
    """Whether each iteration of the innermost of nested ``loops`` initializes what it reads of ``buffer``. False means "not
    shown"."""
    return Initialized(tuple(loops), buffer).holds()


def could_be_private(func: PrimFunc, loop: For, memory: Var) -> bool:
    """Whether the buffer with the pointer ``memory`` is allocated around ``loop`` and privatizable for it.

    All its uses are in the loop, and an iteration reads only what it has written. Memory that threads have in common is
    private to none of them.
    """
    crossed: list[For] = [loop]
    around = path_to(func.body, loop)[:-1]
    for item in reversed(around):
        if isinstance(item, For):
            crossed.insert(0, item)
        elif isinstance(item, BlockRealize):
            buffer = next(iter(sharing(item.block.alloc_buffers, {memory})), None)
            if buffer is not None:
                if ends_with_launch(buffer.scope):
                    is_common = loop.thread in shared_axes(buffer.scope)
                else:
                    is_common = any(n.thread for n in crossed)
                if is_common:
                    return False
                return memory not in used_memory(func.body, {loop}, around) and is_privatizable(buffer, crossed)
    return False
