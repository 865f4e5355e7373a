"""Questions of the dependence oracle: which are decided, and what their answers are by some of the tiers alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager

from tir.analysis.dependence.tiers import NOT_SHOWN, Question, Tier, Verdict


@contextmanager
def recorded() -> Generator[list[Question], None, None]:
    """Collects the questions that are decided inside the ``with`` (not those whose answers are cached)."""
    found: list[Question] = []
    decide = Question._decide

    def listed(self: Question) -> Verdict:
        found.append(self)
        return decide(self)

    with _in_place(listed, "_decide"):
        yield found


@contextmanager
def tiers(only: Collection[Tier] | None = None, without: Collection[Tier] = ()) -> Generator[None, None, None]:
    """Restricts the tiers inside the ``with``; answers are not cached meanwhile. Tiers that ask other questions (of pairs of
    accesses, say) are restricted in the same way."""
    disabled = frozenset(without) | (frozenset(Tier) - frozenset(Tier if only is None else only))
    answer_by = Question.answer_by

    def answered(self: Question, name: Tier) -> Verdict:
        return NOT_SHOWN if name in disabled else answer_by(self, name)

    with _in_place(answered, "answer_by"), _in_place(lambda self: self._decide(), "answer"):
        yield


@contextmanager
def _in_place(method: Callable[..., Verdict], name: str) -> Generator[None, None, None]:
    before = getattr(Question, name)
    setattr(Question, name, method)
    try:
        yield
    finally:
        setattr(Question, name, before)
