"""What a check says when a step is not shown to be legal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...buffer import Buffer
from ...poly import Undecided


@dataclass(frozen=True, eq=False)
class Violation:
    """Why a step would change the program: the rule, instances that prove it, and where."""

    rule: str
    witness: list[str]
    nodes: tuple[Any, ...] = ()
    memory: Buffer | None = None  # where two instances meet
    legal: str = ""  # what would make the step legal


def cannot_prove(error: Undecided, nodes: Sequence[Any] = ()) -> Violation:
    return Violation(f"cannot prove that the step keeps the program's meaning: {error}", [], tuple(nodes))
