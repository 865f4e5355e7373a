"""The dependence oracle: each question of legality is answered by tiers of proof, cheapest first.

A question is a class with one method for each tier that can answer it. A tier answers ``Proved``, ``Refuted`` with a
witness, or ``Unknown``. The first that is not ``Unknown`` is the answer; if all are, the last reason given is. No tier
may contradict another: what a cheap one proves, exact sets never refute (``tests/analysis/test_tiers.py``). A tier that
uses sets shares the budget of :func:`tir.poly.decide` with the questions that it asks itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from time import perf_counter
from typing import Any, ClassVar, TypeVar

from ... import config
from ...buffer import Buffer
from ...errors import ScheduleError, Unproved
from ...function import PrimFunc
from ...node import Memo
from ...poly import Undecided, decide


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
    refusal: ClassVar[type[ScheduleError]] = ScheduleError  # of a step that needs it


@dataclass(frozen=True, eq=False)
class Refuted(_Against):
    """The claim does not hold: ``witness`` proves it."""


@dataclass(frozen=True, eq=False)
class Unknown(_Against):
    """Neither proved nor refuted. ``witness`` is a possible conflict, if known."""

    refusal = Unproved


def require_legal(
    verdict: Verdict, func: PrimFunc, *, nodes: Sequence[Any] | None = None, legal: str = "", why: str = ""
) -> None:
    """Raise ``ScheduleError`` unless ``verdict`` is a proof; unknown is refused as well.

    ``func`` is the program that contains the nodes; ``nodes`` and ``legal`` go before the verdict's own, ``why`` before
    its rule.
    """
    if isinstance(verdict, (Refuted, Unknown)):
        raise verdict.refusal(
            f"{why}: {verdict.rule}" if why else verdict.rule,
            witness=list(verdict.witness),
            nodes=list(verdict.nodes if nodes is None else nodes),
            func=func,
            legal=legal or verdict.legal,
        )


NOT_SHOWN = Unknown("")  # the answer of a tier that can only prove


def undecided(
    error: Undecided, claim: str = "the step keeps the program's meaning", nodes: Sequence[Any] = ()
) -> Unknown:
    """Exact sets cannot decide whether ``claim`` holds."""
    return Unknown(f"cannot prove that {claim}: {error}", nodes=nodes)


def by_sets(question: Callable[..., Verdict], *args: Any, nodes: Sequence[Any] = ()) -> Verdict:
    """The answer of ``question(*args)``, which exact sets may not decide: then it is unknown whether the step keeps the
    program's meaning."""
    found = decide(question, *args)
    return undecided(found, nodes=nodes) if isinstance(found, Undecided) else found


class Tier(Enum):
    """The tiers of proof, cheapest first: the order in which a question tries those that it has."""

    UNCHANGED = "unchanged"  # the same statement in the same loops, ordered as before
    SIMPLE_BLOCK = "simple block"  # the form of a block, a nest or a move, from its iterators
    REDUCTION = "commuting updates"  # the two are updates of one reduction
    AFFINE = "affine forms"  # Banerjee's test, sums of loop variables
    ITERATOR_MAP = "iterator map"  # mixed-radix digits of loop variables
    PRIVATE = "private buffer"  # each iteration has a buffer for itself
    ENUMERATION = "enumeration"  # every point of a small domain
    PAIRS = "pairs of accesses"  # the same question of each pair of accesses
    SETS = "exact sets"  # isl
    SPLIT = "fused loops split"  # what is as long as a product of sizes as its digits, then pairs of accesses


Method = TypeVar("Method", bound=Callable[[Any], Verdict])


def tier(name: Tier) -> Callable[[Method], Method]:
    """Makes a method of a question one of its tiers."""

    def mark(method: Method) -> Method:
        method.tier = name  # type: ignore[attr-defined]
        return method

    return mark


class Question:
    """A question of legality. Subclasses state the claim in ``__str__``, and have a method for each tier."""

    tiers: ClassVar[dict[Tier, Callable[[Any], Verdict]]] = {}

    def __init_subclass__(cls) -> None:
        found = {m.tier: m for m in vars(cls).values() if hasattr(m, "tier")}
        cls.tiers = {t: found[t] for t in Tier if t in found}

    def anchor(self) -> tuple[Any, Any] | None:
        """A node whose lifetime bounds that of the cached answer, and the key to find it by; None: it is not
        cached."""
        return None

    def unknown(self, error: Undecided) -> Unknown:
        """The answer if exact sets have none."""
        return undecided(error, str(self))

    def answer(self) -> Verdict:
        """The answer of the first tier that has one; otherwise of the last."""
        place = self.anchor()
        if place is None:
            return self._decide()
        known = _ANSWERS.setdefault(place[0], {})
        key = (type(self), place[1])
        if key not in known:
            known[key] = self._decide()
        return known[key]

    def holds(self) -> bool:
        """Whether the answer is a proof."""
        return self.answer().is_proved

    def answer_by(self, name: Tier) -> Verdict:
        """The answer of one tier."""
        found = decide(self.tiers[name], self)
        return self.unknown(found) if isinstance(found, Undecided) else found

    def _decide(self) -> Verdict:
        global _depth, _explaining
        if not _depth:
            _explaining = config.explains()
        why: Unknown | None = None
        _depth += 1
        try:
            for name in self.tiers:
                start = perf_counter() if _explaining else 0.0
                verdict = self.answer_by(name)
                if _explaining and verdict is not NOT_SHOWN:
                    _explain(self, name, verdict, perf_counter() - start)
                if not isinstance(verdict, Unknown):
                    return verdict
                why = verdict if verdict.rule else why
        finally:
            _depth -= 1
        return why or Unknown(f"cannot prove that {self}: no tier of proof that is in use shows it")


_ANSWERS: Memo[dict[Any, Verdict]] = Memo()
_depth = 0  # how many questions, asked by one another, are being answered
_explaining = False


def _explain(question: Question, name: Tier, verdict: Verdict, seconds: float) -> None:
    """One line on standard error: the knob ``explain``."""
    word = "unknown" if isinstance(verdict, Unknown) else "refuted" if isinstance(verdict, Refuted) else "proved"
    print(f"{word:<8}{name.value:<22}{seconds * 1e3:8.2f} ms  {'  ' * (_depth - 1)}{question}", file=sys.stderr)
