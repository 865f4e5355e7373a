"""What parts of a program use from around them, and define: facts that are kept with statements, of which steps copy few."""

from __future__ import annotations

from typing import Any

from ..buffer import Buffer
from ..expr import BinaryOp, IntImm, Var
from ..node import once
from ..stmt import BlockRealize

_NOTHING = frozenset[Any]()
Names = set[Any] | frozenset[Any]


class Summary:
    """What a well-formed part uses from its context, and defines: it is well-formed wherever these fit."""

    __slots__ = ("uses", "used_in_blocks", "bound", "allocated", "blocks", "threads", "plain", "depth")

    def __init__(self, depth: int = 0) -> None:
        self.uses: Names = set()  # variables and buffers
        self.used_in_blocks: Names = set()  # in blocks with iterators, which hide the loops around
        self.bound: Names = set()  # variables, and the buffers that are
        self.allocated: frozenset[Buffer] = _NOTHING
        self.blocks: set[str] = set()
        self.threads: frozenset[str] = _NOTHING
        self.plain = True  # only what is listed here matters
        self.depth = depth

    def close(self) -> None:
        """Remove what is defined inside the part. The summary is complete then, and not changed any more."""
        bound = self.bound
        if bound:
            self.uses -= bound
            self.used_in_blocks -= bound
        else:
            self.bound = _NOTHING  # for all summaries one: most of their sets are empty
        if not self.uses:
            self.uses = _NOTHING
        if not self.used_in_blocks:
            self.used_in_blocks = _NOTHING

    def add(self, part: Summary, depth: int) -> None:
        """Add the summary of ``part``, nested in ``depth`` blocks."""
        if depth == self.depth:
            self.uses |= part.uses
        else:
            self.used_in_blocks |= part.uses
        self.used_in_blocks |= part.used_in_blocks
        self.bound |= part.bound
        self.blocks |= part.blocks
        if part.allocated:
            self.allocated |= part.allocated
        if part.threads:
            self.threads |= part.threads
        if not part.plain:
            self.plain = False


@once
def names_in_bindings(s: BlockRealize) -> frozenset[Var] | None:
    """The variables in the bindings of a block, its predicate and its domains; None if these do more than compute with numbers,
    or break a rule wherever they stand."""
    iters = s.block.iter_vars
    if len(iters) != len(s.iter_values) or not s.predicate.dtype.is_bool:
        return None
    left: list[Any] = [*s.iter_values, s.predicate]
    names: set[Var] = set()
    for iv, value in zip(iters, s.iter_values):
        if iv.var.dtype is not value.dtype:
            return None
        if iv.dom is not None and (type(iv.dom.min) is not IntImm or type(iv.dom.extent) is not IntImm):
            left += (iv.dom.min, iv.dom.extent)
    for e in left:  # which grows
        kind = e.__class__
        if kind is Var:
            names.add(e)
        elif isinstance(e, BinaryOp) and e.a.dtype is e.b.dtype:
            left += (e.a, e.b)
        elif kind is not IntImm:
            return None
    return frozenset(names) if names.isdisjoint([iv.var for iv in iters]) else None
