"""What a well-formed part of a program needs of its context: known of it, the part is not checked again elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set
from typing import Any

from ..buffer import Buffer
from ..expr import Var
from ..stmt import BlockRealize
from .contents import contents


class Summary:
    """What a well-formed part uses from its context, and defines: it is well-formed wherever these fit."""

    __slots__ = ("uses", "used_in_blocks", "buffers", "bound", "allocated", "blocks", "threads", "plain", "depth")

    def __init__(self, depth: int = 0) -> None:
        self.uses: set[Var] = set()
        self.used_in_blocks: set[Var] = set()  # in blocks with iterators, which hide the loops around
        self.buffers: set[Buffer] = set()
        self.bound: set[Var] = set()
        self.allocated: set[Buffer] = set()
        self.blocks: set[str] = set()
        self.threads: set[str] = set()
        self.plain = True  # only what is listed here matters
        self.depth = depth

    @staticmethod
    def of(parts: Collection[Summary]) -> Summary | None:
        """The summary of parts that follow each other, in the same blocks; None if two have a block of one name."""
        made = Summary()
        for name in _SETS:
            setattr(made, name, set().union(*[getattr(part, name) for part in parts]))
        for part in parts:
            made.blocks.update(part.blocks)
        made.plain = all(part.plain for part in parts)
        return made if len(made.blocks) == sum(len(part.blocks) for part in parts) else None

    def without(self, members: Iterable[Any], unused: Set[Any]) -> Summary:
        """The summary of a sequence without some members, and without the names ``unused`` by the others; it may still
        list other names that those used."""
        made = Summary()
        for name in _SETS:
            found = getattr(self, name)
            setattr(made, name, found if found.isdisjoint(unused) else found - unused)
        gone = {s.block.name for s in contents.of_all(members) if isinstance(s, BlockRealize)}
        made.blocks = self.blocks - gone
        return made

    def close(self) -> None:
        """Remove what is defined inside the part. The summary is complete then, and not changed any more."""
        if self.bound:
            self.uses -= self.bound
            self.used_in_blocks -= self.bound
        if self.allocated:
            self.buffers -= self.allocated
        for name in _SETS:
            if not getattr(self, name):
                setattr(self, name, _NOTHING)

    def allocate(self, buffers: Iterable[Buffer], pointers: Iterable[Var]) -> None:
        self.allocated.update(buffers)
        self.bound.update(pointers)

    def add(self, part: Summary, depth: int) -> None:
        """Add the summary of ``part``, nested in ``depth`` blocks."""
        if depth == self.depth:
            self.uses |= part.uses
        else:
            self.used_in_blocks |= part.uses
        self.used_in_blocks |= part.used_in_blocks
        self.buffers |= part.buffers
        self.bound |= part.bound
        self.allocated |= part.allocated
        self.blocks |= part.blocks
        self.threads |= part.threads
        self.plain = self.plain and part.plain


class NoSummary(Summary):
    """Of the function, which each step makes anew: nothing is to be known of it."""

    __slots__ = ()

    def allocate(self, buffers: Iterable[Buffer], pointers: Iterable[Var]) -> None:
        pass

    def add(self, part: Summary, depth: int) -> None:
        pass


_SETS = ("uses", "used_in_blocks", "buffers", "bound", "allocated", "threads")
_NOTHING = frozenset[Any]()  # for all summaries one: most of their sets are empty
