"""From verdicts to errors: a step is taken where its questions are proved, and refused, with the witness, elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..analysis.dependence.verdict import Refuted, Unknown, Verdict
from ..errors import ScheduleError
from ..function import PrimFunc


def require_legal(
    verdict: Verdict, func: PrimFunc, *, nodes: Sequence[Any] | None = None, legal: str = "", why: str = ""
) -> None:
    """Raise ``ScheduleError`` unless ``verdict`` is a proof. ``func`` is the program that its nodes are of; ``nodes`` and
    ``legal`` go before its own, and ``why`` before its rule."""
    if isinstance(verdict, (Refuted, Unknown)):
        raise ScheduleError(
            f"{why}: {verdict.rule}" if why else verdict.rule,
            witness=list(verdict.witness),
            nodes=list(verdict.nodes if nodes is None else nodes),
            func=func,
            legal=legal or verdict.legal,
        )
