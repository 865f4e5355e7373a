"""Which tests are about a piece of code, told from the words that both use: those are tried first on a mutant.

Names in our code and tests are words of the subject (``peel``, ``shared_order``, ``reads``), and tests quote messages. The
measure is the usual one for texts: the cosine of the vectors of words, a rare word counting more than a common one.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from tests.tools.mutant_sites import Mutant

_AROUND = 0.3  # the weight of a word of the file around a function or a test
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


class RelatedTests:
    """The tests of a session, to be ordered by how much they are about a mutant."""

    def __init__(self, items: Sequence[pytest.Item]):
        self.items: dict[Any, list[pytest.Item]] = defaultdict(list)  # by their function: those of all parameters
        for item in items:
            self.items[getattr(item, "function", item)].append(item)
        texts = {test: _of_test(found[0]) for test, found in self.items.items()}
        common = Counter(word for words in texts.values() for word in words)
        self.rarity = {word: math.log(len(texts) / n) for word, n in common.items()}
        self.vectors = {test: self._vector(words) for test, words in texts.items()}

    def _vector(self, words: Mapping[str, float]) -> dict[str, float]:
        """Of length 1; words that no test has are left out."""
        found = {word: weight * self.rarity[word] for word, weight in words.items() if word in self.rarity}
        length = math.hypot(*found.values()) or 1.0
        return {word: weight / length for word, weight in found.items()}

    def of(self, mutant: Mutant, source: str, usable: Iterable[pytest.Item], count: int) -> list[pytest.Item]:
        """The ``count`` functions of tests that are most about the mutant, as those of their tests that are ``usable``:
        the first of each, then the second of each; first of all those whose parameters name what is changed."""
        wanted, allowed = self._vector(_of_mutant(mutant, source)), set(usable)
        names = _names(mutant, source)
        found = {test: _named([i for i in items if i in allowed], names) for test, items in self.items.items()}
        likeness = {t: sum(w * self.vectors[t].get(word, 0.0) for word, w in wanted.items()) for t in found if found[t]}
        best = sorted(likeness, key=lambda test: -likeness[test])[:count]
        return [item for turn in zip_longest(*(found[test] for test in best)) for item in turn if item is not None]


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text) if len(word) > 2}


def _weighted(inner: str, around: str) -> dict[str, float]:
    return dict.fromkeys(_words(around), _AROUND) | dict.fromkeys(_words(inner), 1.0)


def _of_test(item: pytest.Item) -> dict[str, float]:
    function = inspect.unwrap(getattr(item, "function", None) or type(item))
    try:
        lines = inspect.getsourcelines(function)[0]
    except (OSError, TypeError):
        lines = []
    return _weighted(f"{item.path.stem} {' '.join(lines)}", _text(item.path))


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _of_mutant(mutant: Mutant, source: str) -> dict[str, float]:
    """Of the innermost function around it, or else of its statement, and of its file."""
    line = source.count("\n", 0, mutant.start) + 1
    inside = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef) and _has(n, line)]
    inner = ast.get_source_segment(source, max(inside, key=lambda n: n.lineno)) if inside else mutant.statement
    return _weighted(f"{mutant.statement.split(': ', 1)[0]} {inner}", source)


def _names(mutant: Mutant, source: str) -> tuple[set[str], set[str]]:
    """Words of the names of the changed function and its file, and the names of the file's other functions."""
    inner = mutant.statement.split(": ", 1)[0].partition(":")[2]
    others = {n.name.strip("_") for n in ast.parse(source).body if isinstance(n, ast.FunctionDef)}
    return _words(f"{inner} {Path(mutant.file).stem}"), others


def _named(items: list[pytest.Item], names: tuple[set[str], set[str]]) -> list[pytest.Item]:
    """The tests of a function in their order, before them those with parameters that have more of the names."""

    def missing(item: pytest.Item) -> tuple[int, bool]:
        about = getattr(getattr(item, "callspec", None), "id", "").lower()
        return -sum(len(word) for word in names[0] if word in about), all(name not in about for name in names[1])

    return sorted(items, key=missing)


def _has(node: ast.FunctionDef, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or 0)
