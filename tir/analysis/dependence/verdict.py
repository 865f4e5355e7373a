"""The answer to a question of legality: proved, refuted by a witness, or unknown for a reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...buffer import Buffer
from ...poly import Undecided


@dataclass(frozen=True, eq=False)
class Verdict:
    """One of :class:`Proved`, :class:`Refuted` and :class:`Unknown`."""

    @property
    def is_proved(self) -> bool:
        return isinstance(self, Proved)


@dataclass(frozen=True, eq=False)
class Proved(Verdict):
    """It holds. ``private``: for iterations of a loop that are independent, the buffers that each must have a copy of for
    that, besides those of the loop's clause."""

    private: tuple[Buffer, ...] = ()


PROVED = Proved()


@dataclass(frozen=True, eq=False)
class _Against(Verdict):
    """Not shown to hold: the ``rule`` as shown to a user, two instances as lines of text, and the place."""

    rule: str
    witness: Sequence[str] = ()
    nodes: Sequence[Any] = ()
    memory: Buffer | None = None  # in which two instances conflict
    legal: str = ""  # what would be legal


@dataclass(frozen=True, eq=False)
class Refuted(_Against):
    """The claim does not hold: ``witness`` proves it."""


@dataclass(frozen=True, eq=False)
class Unknown(_Against):
    """Neither proved nor refuted. ``witness`` is a possible conflict, if known."""


NOT_SHOWN = Unknown("")  # the answer of a tier that can only prove


def undecided(
    error: Undecided, claim: str = "the step keeps the program's meaning", nodes: Sequence[Any] = ()
) -> Unknown:
    """Exact sets cannot decide whether ``claim`` holds."""
    return Unknown(f"cannot prove that {claim}: {error}", nodes=nodes)
